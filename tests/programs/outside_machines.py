"""Programs from outside: interpreters of token lists."""

from __future__ import annotations

from typing import Any

from outside_program import Outside
from program import Rng


# ------------------------------------------------------------------------------------------- stack machine
def stack_machine(program, x):
    """Runs (operation, number) pairs on a stack that holds x; what is left on it, and how many steps it took."""
    stack = [x]
    counter = 0
    steps = 0
    while counter < len(program):
        operation, number = program[counter]
        counter += 1
        steps += 1
        if operation == "push":
            stack.append(number)
        elif operation == "dup":
            stack.append(stack[-1])
        elif operation == "swap":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif operation == "drop":
            stack.pop()
        elif operation == "neg":
            stack[-1] = -stack[-1]
        elif operation == "loop":
            if stack[-1] > number and steps < 100:
                counter = 0
        else:
            b = stack.pop()
            a = stack.pop()
            if operation == "add":
                stack.append(a + b)
            elif operation == "sub":
                stack.append(a - b)
            elif operation == "mul":
                stack.append(a * b)
            elif operation == "div":
                stack.append(a / b)
            else:
                raise ValueError("unknown operation")
    return stack, steps


def stack_machine_top(program, x):
    stack, _ = stack_machine(program, x)
    return stack[-1] if stack else 0.0


GROW = ("push", "dup")
SHRINK = ("add", "sub", "mul", "div", "drop")


def stack_codes(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    longest = 60 if full else 10
    made: list[tuple[Any, ...]] = [([], 2.0), ([("push", 0.5), ("mul", 0.0), ("loop", 0.01)], 3.0)]
    for n in rng.integers(1, longest + 1, count):
        height, code = 1, []
        for _ in range(int(n)):
            kinds = [*GROW, "neg", *((*SHRINK, "swap") if height > 1 else ())]
            kind = kinds[int(rng.integers(len(kinds)))]
            height += (kind in GROW) - (kind in SHRINK)
            code.append((kind, float(rng.uniform(0.5, 2.0))))
        made.append((code, float(rng.uniform(0.5, 2.0))))
    return [own if _runs(*own) else ([("dup", 0.0), ("mul", 0.0)], 1.5) for own in made[:count]]


def _runs(program: Any, x: float) -> bool:
    """Whether nothing is divided by zero."""
    try:
        stack_machine(program, x)
    except ZeroDivisionError:
        return False
    return True


def broken_stack_machine(program, x):
    return stack_machine(program, x)


def _broken_codes(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    made = stack_codes(rng, count, full)
    made[5] = ([("add", 0.0)], 1.0)
    made[6] = ([("push", 0.0), ("div", 0.0)], 1.0)
    return made


# ------------------------------------------------------------------------------------------- shunting yard
PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 3}


def shunting_yard(tokens):
    """From infix to postfix notation, Dijkstra's way."""
    output = []
    operators = []
    for token in tokens:
        if token in PRECEDENCE:
            while operators and operators[-1] != "(":
                top = operators[-1]
                if PRECEDENCE[top] > PRECEDENCE[token] or (PRECEDENCE[top] == PRECEDENCE[token] and token != "^"):
                    output.append(operators.pop())
                else:
                    break
            operators.append(token)
        elif token == "(":
            operators.append(token)
        elif token == ")":
            while operators and operators[-1] != "(":
                output.append(operators.pop())
            if not operators:
                raise ValueError("mismatched parentheses")
            operators.pop()
        else:
            output.append(token)
    while operators:
        top = operators.pop()
        if top == "(":
            raise ValueError("mismatched parentheses")
        output.append(top)
    return output


def broken_shunting_yard(tokens):
    return shunting_yard(tokens)


def _infix(rng: Rng, depth: int) -> list[str]:
    if depth == 0 or rng.random() < 0.2:
        return [str(rng.choice(["a", "b", "c", "1"]))]
    inner = [*_infix(rng, depth - 1), str(rng.choice(["+", "-", "*", "/", "^"])), *_infix(rng, depth - 1)]
    return ["(", *inner, ")"] if rng.random() < 0.4 else inner


def _expressions(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    depth = 6 if full else 3
    return [([],), (["a"],), *((_infix(rng, depth),) for _ in range(count))][:count]


def _broken_expressions(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    made = _expressions(rng, count, full)
    made[4] = (["(", "a", "+", "b"],)
    made[7] = (["a", ")"],)
    return made



PROGRAMS = (
    Outside(stack_machine, stack_codes, loss=stack_machine_top, wrt=(0, 1)),
    Outside(broken_stack_machine, _broken_codes, raises=True),
    Outside(shunting_yard, _expressions),
    Outside(broken_shunting_yard, _broken_expressions, raises=True),
)
