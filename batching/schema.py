"""The type of one example, as seen over a whole list of examples.

Invariant: every schema is a frozen, hashable value; two lists of examples with equal schemas can share compiled code.
A schema says which columns exist (see columns.py) and never holds data.
Must not know: how examples are walked, nor anything of the compiler that reads schemas.

Where examples differ, the schema widens: a dimension becomes `None` (ragged), a value becomes optional, a position
with several types becomes a variant, and objects that link to one another become rows of a node table.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "ArraySchema", "LinkSchema", "ListSchema", "NoneSchema", "NumberSchema", "OptionalSchema", "PackedSchema",
    "RecordSchema", "Schema", "StringSchema", "TableSchema", "VariantSchema",
]

PYTHON_DTYPES = {"int": "int64", "float": "float64", "bool": "bool", "complex": "complex128"}
NUMPY_BOOL = "bool_"


@dataclass(frozen=True)
class NumberSchema:
    """A number. `kind` is 'int', 'float', 'bool' or 'complex' for Python numbers, else a NumPy dtype's name.

    NumPy's own bool scalar has the kind 'bool_', since NumPy's name for it is the same as Python's.

    Column: `NumberColumn`, values [n].
    """

    kind: str

    @property
    def python(self) -> bool:
        """Whether the examples hold Python numbers (else NumPy scalars)."""
        return self.kind in PYTHON_DTYPES

    @property
    def dtype(self) -> str:
        """The name of the column's dtype."""
        return "bool" if self.kind == NUMPY_BOOL else PYTHON_DTYPES.get(self.kind, self.kind)


@dataclass(frozen=True)
class ArraySchema:
    """A NumPy array. A `None` in `shape` is a size that differs between examples.

    Columns: all sizes static: `ArrayColumn`, values [n, *shape]. Else `RaggedColumn`: with k the index of the last
    None, values [total, *shape[k+1:]], start [n] and dims [n, k+1].
    """

    dtype: str
    shape: tuple[int | None, ...]

    @property
    def ragged(self) -> bool:
        """Whether some size differs between examples."""
        return None in self.shape

    @property
    def leading(self) -> int:
        """How many leading sizes a ragged column keeps per example: up to and with the last None; 0 if static."""
        return max((k + 1 for k, size in enumerate(self.shape) if size is None), default=0)

    @property
    def trailing(self) -> tuple[int, ...]:
        """The static sizes after the last None."""
        return tuple(size for size in self.shape[self.leading:] if size is not None)


@dataclass(frozen=True)
class NoneSchema:
    """None in every example. Column: `NoneColumn`.

    `seen` is false where there is no example at all: the elements of lists that are all empty.
    """

    seen: bool = True


@dataclass(frozen=True)
class StringSchema:
    """A string; the column holds ids of strings interned for the process (see strings.py)."""


@dataclass(frozen=True)
class RecordSchema:
    """A container of fixed structure. `kind` is 'tuple', 'dict', 'namedtuple' or 'dataclass'.

    `names` are the attribute names, the dictionary keys in their order, or '0', '1', ... for a tuple. Structure only:
    each field has its own column with the same number of rows.
    """

    kind: str
    cls: type
    names: tuple[str | int, ...]
    fields: tuple[Schema, ...]


@dataclass(frozen=True)
class ListSchema:
    """A sequence whose length differs. `kind` is 'list', 'deque', or 'tuple' for tuples of one element type and
    differing length.

    Columns: start [n], length [n], and one column group for the elements of all lists; a list is contiguous in it.
    """

    element: Schema
    kind: str = "list"


@dataclass(frozen=True)
class LinkSchema:
    """A node of a table. Column: row of table number `table`, -1 for None (only where `nullable`)."""

    table: int
    nullable: bool


@dataclass(frozen=True)
class OptionalSchema:
    """A value or None. Columns: present [n], and `inner` for all n rows, zero where absent."""

    inner: Schema


@dataclass(frozen=True)
class VariantSchema:
    """One of several types. Columns: tag [n], and every alternative for all n rows, zero where it is not the one."""

    alternatives: tuple[Schema, ...]


@dataclass(frozen=True)
class TableSchema:
    """The nodes that links lead to.

    `classes` pairs each class with the names of its fields; `names` and `fields` are the union over the classes.
    Tuples and dictionaries that nest without a fixed depth are nodes too, of class tuple or dict, one entry for each
    arity or set of keys; tuple fields are named '0', '1', ...
    `shared`: some node is the target of more than one link. `cyclic`: some node reaches itself.
    Columns: tag [rows] (index into `classes`) and one column per field, zero where the row's class lacks the field.
    """

    classes: tuple[tuple[type, tuple[str | int, ...]], ...]
    names: tuple[str | int, ...]
    fields: tuple[Schema, ...]
    shared: bool = False
    cyclic: bool = False

    def field_of(self, name: str | int) -> Schema:
        """The schema of field `name`. Raises KeyError where no class has it."""
        try:
            return self.fields[self.names.index(name)]
        except ValueError:
            raise KeyError(name) from None


Schema = (
    NumberSchema | ArraySchema | NoneSchema | StringSchema | RecordSchema | ListSchema | LinkSchema | OptionalSchema
    | VariantSchema
)


@dataclass(frozen=True)
class PackedSchema:
    """The whole type of a packed list: the example's own schema and the tables that its links lead to.

    `aliased`: some example reaches one list, dictionary or array (or arrays that share memory) in two ways. Columns
    hold it twice, so code that writes to it cannot be run on them; nodes are not concerned, links keep their identity.
    """

    root: Schema
    tables: tuple[TableSchema, ...] = field(default=())
    aliased: bool = False
