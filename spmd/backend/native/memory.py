"""What all loops share, as LLVM text: memory that they take and give back, and the look at signals.

Invariant: all blocks of a call are in one doubly linked list whose head is in the call's own words, so whatever a row
leaves behind when it fails is freed when the call ends; bytes are counted against the budget. The capacity of a block
(bytes) stands in front of it. Must not know what is kept in the blocks.
"""

from __future__ import annotations

HEADER = 32
"""Bytes in front of a block: next, previous, capacity, unused (so that blocks are aligned)."""
(
    ROWS, STATUS, LANES, FUEL, USED, BUDGET, HEAD, RECORDS, LEAST, ROW, SPENT, PATIENCE, THREAD, SAVE, RESTORE, SIGNALS
) = range(16)
WORDS = 16
"""Words of a call: number of rows; addresses of the rows' status and lanes; back edges until the next poll; bytes in
use and allowed; head of the list of blocks; address of the fault records; least lane that failed; the row of the last
poll, its back edges so far and how many a row may have; then Python's thread state, and its functions that give the
lock back and take it, and that look for signals."""

POLL = 1 << 20
"""Back edges from poll to poll: milliseconds."""
FIRST = 1 << 16
"""Back edges until the first poll, behind which Python's lock is given back: a short call would lose more by waiting
for it than others gain."""

MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"

BLOCKS = f"""
declare ptr @malloc(i64)
declare void @free(ptr)

define internal ptr @take(ptr %words, i64 %bytes) noinline {{
entry:
  %used.at = getelementptr i64, ptr %words, i64 {USED}
  %used = load i64, ptr %used.at
  %budget.at = getelementptr i64, ptr %words, i64 {BUDGET}
  %budget = load i64, ptr %budget.at
  %left = sub i64 %budget, %used
  %total = add i64 %bytes, {HEADER}
  %fits = icmp sle i64 %total, %left
  br i1 %fits, label %ask, label %none
ask:
  %block = call ptr @malloc(i64 %total)
  %missing = icmp eq ptr %block, null
  br i1 %missing, label %none, label %link
link:
  %more = add i64 %used, %total
  store i64 %more, ptr %used.at
  %head.at = getelementptr i64, ptr %words, i64 {HEAD}
  %next = load ptr, ptr %head.at
  store ptr %next, ptr %block
  %previous.at = getelementptr i64, ptr %block, i64 1
  store ptr null, ptr %previous.at
  %capacity.at = getelementptr i64, ptr %block, i64 2
  store i64 %bytes, ptr %capacity.at
  store ptr %block, ptr %head.at
  %alone = icmp eq ptr %next, null
  br i1 %alone, label %done, label %back
back:
  %back.at = getelementptr i64, ptr %next, i64 1
  store ptr %block, ptr %back.at
  br label %done
done:
  %data = getelementptr i8, ptr %block, i64 {HEADER}
  ret ptr %data
none:
  ret ptr null
}}

define internal void @give(ptr %words, ptr %data) noinline {{
entry:
  %block = getelementptr i8, ptr %data, i64 -{HEADER}
  %next = load ptr, ptr %block
  %previous.at = getelementptr i64, ptr %block, i64 1
  %previous = load ptr, ptr %previous.at
  %capacity.at = getelementptr i64, ptr %block, i64 2
  %bytes = load i64, ptr %capacity.at
  %total = add i64 %bytes, {HEADER}
  %used.at = getelementptr i64, ptr %words, i64 {USED}
  %used = load i64, ptr %used.at
  %less = sub i64 %used, %total
  store i64 %less, ptr %used.at
  %head.at = getelementptr i64, ptr %words, i64 {HEAD}
  %first = icmp eq ptr %previous, null
  %from = select i1 %first, ptr %head.at, ptr %previous
  store ptr %next, ptr %from
  %last = icmp eq ptr %next, null
  br i1 %last, label %done, label %back
back:
  %back.at = getelementptr i64, ptr %next, i64 1
  store ptr %previous, ptr %back.at
  br label %done
done:
  call void @free(ptr %block)
  ret void
}}

define internal ptr @grow(ptr %words, ptr %data, i64 %used, i64 %bytes) noinline {{
entry:
  %capacity.at = getelementptr i8, ptr %data, i64 -16
  %capacity = load i64, ptr %capacity.at
  %fits = icmp ule i64 %bytes, %capacity
  br i1 %fits, label %same, label %more
same:
  ret ptr %data
more:
  %twice = shl i64 %capacity, 1
  %enough = icmp ugt i64 %twice, %bytes
  %wanted = select i1 %enough, i64 %twice, i64 %bytes
  %new = call ptr @take(ptr %words, i64 %wanted)
  %missing = icmp eq ptr %new, null
  br i1 %missing, label %none, label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %data, i64 %used, i1 false)
  call void @give(ptr %words, ptr %data)
  ret ptr %new
none:
  ret ptr null
}}
"""
"""Taking, giving back and growing blocks: for loops that have arrays of their own."""

ASK = f"""
define internal i64 @ask(ptr %words, i64 %row) noinline {{
entry:
  %thread.at = getelementptr i64, ptr %words, i64 {THREAD}
  %thread = load ptr, ptr %thread.at
  %held = icmp eq ptr %thread, null
  br i1 %held, label %look, label %lock
lock:
  %restore.at = getelementptr i64, ptr %words, i64 {RESTORE}
  %restore = load ptr, ptr %restore.at
  call void %restore(ptr %thread)
  br label %look
look:
  %signals.at = getelementptr i64, ptr %words, i64 {SIGNALS}
  %signals = load ptr, ptr %signals.at
  %found = call i32 %signals()
  %save.at = getelementptr i64, ptr %words, i64 {SAVE}
  %save = load ptr, ptr %save.at
  %again = call ptr %save()
  store ptr %again, ptr %thread.at
  %none = icmp eq i32 %found, 0
  br i1 %none, label %count, label %stop
count:
  %row.at = getelementptr i64, ptr %words, i64 {ROW}
  %before = load i64, ptr %row.at
  store i64 %row, ptr %row.at
  %same = icmp eq i64 %before, %row
  %spent.at = getelementptr i64, ptr %words, i64 {SPENT}
  %spent = load i64, ptr %spent.at
  %own = select i1 %same, i64 %spent, i64 0
  %more = add i64 %own, {POLL}
  store i64 %more, ptr %spent.at
  %patience.at = getelementptr i64, ptr %words, i64 {PATIENCE}
  %patience = load i64, ptr %patience.at
  %late = icmp sge i64 %more, %patience
  %answer = select i1 %late, i64 0, i64 {POLL}
  ret i64 %answer
stop:
  ret i64 -1
}}
"""
"""Looks at Python's signals and counts what a row has spent: the back edges until the next time, 0 where the row has
had its share, -1 where a signal's handler raised."""

ENDING = f"""
declare void @free(ptr)
{MEMCPY}

define i64 @release(ptr %words) {{
entry:
  %head.at = getelementptr i64, ptr %words, i64 {HEAD}
  %first = load ptr, ptr %head.at
  br label %next
next:
  %block = phi ptr [ %first, %entry ], [ %after, %free ]
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %free
free:
  %after = load ptr, ptr %block
  call void @free(ptr %block)
  br label %next
done:
  store ptr null, ptr %head.at
  ret i64 0
}}

define i64 @collect(ptr %to, ptr %blocks, ptr %bytes, i64 %rows) {{
entry:
  br label %head
head:
  %r = phi i64 [ 0, %entry ], [ %r.next, %body ]
  %at = phi ptr [ %to, %entry ], [ %at.next, %body ]
  %more = icmp slt i64 %r, %rows
  br i1 %more, label %body, label %done
body:
  %block.at = getelementptr ptr, ptr %blocks, i64 %r
  %block = load ptr, ptr %block.at
  %size.at = getelementptr i64, ptr %bytes, i64 %r
  %size = load i64, ptr %size.at
  call void @llvm.memcpy.p0.p0.i64(ptr %at, ptr %block, i64 %size, i1 false)
  %at.next = getelementptr i8, ptr %at, i64 %size
  %r.next = add i64 %r, 1
  br label %head
done:
  ret i64 0
}}
"""
"""What is called behind a loop: one function frees all blocks, one copies results to where they stay."""


def entry_text(name: str, inner: str) -> str:
    """A function that runs `inner`, which may give Python's lock back, and takes the lock again."""
    return f"""
define i64 @{name}(ptr %words) {{
entry:
  %result = call i64 @{inner}(ptr %words)
  %thread.at = getelementptr i64, ptr %words, i64 {THREAD}
  %thread = load ptr, ptr %thread.at
  %held = icmp eq ptr %thread, null
  br i1 %held, label %done, label %lock
lock:
  %restore.at = getelementptr i64, ptr %words, i64 {RESTORE}
  %restore = load ptr, ptr %restore.at
  call void %restore(ptr %thread)
  br label %done
done:
  ret i64 %result
}}
"""
