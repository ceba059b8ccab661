"""Rows of the table: what NumPy has removed since."""

from __future__ import annotations

from tfqueue.compat.names_row import OldName

TYPES = {
    "bool": "bool",
    "int": "int",
    "float": "float",
    "complex": "complex",
    "object": "object",
    "str": "str",
    "long": "int",
    "unicode": "str",
}
"""Names of Python's own types."""

SAME = {
    "float_": "float64",
    "complex_": "complex128",
    "cfloat": "complex128",
    "singlecomplex": "complex64",
    "longfloat": "longdouble",
    "longcomplex": "clongdouble",
    "clongfloat": "clongdouble",
    "unicode_": "str_",
    "string_": "bytes_",
    "Inf": "inf",
    "Infinity": "inf",
    "PINF": "inf",
    "infty": "inf",
    "NaN": "nan",
    "product": "prod",
    "cumproduct": "cumprod",
    "sometrue": "any",
    "alltrue": "all",
    "round_": "round",
    "row_stack": "vstack",
    "mat": "asmatrix",
    "rank": "ndim",
}
"""Second names of what NumPy still has."""

OTHER = {
    "NINF": "-np.inf",
    "PZERO": "0.0",
    "NZERO": "-0.0",
    "in1d": "np.isin",
    "trapz": "np.trapezoid",
    "asscalar": "ndarray.item",
    "asfarray": "np.asarray(a, dtype=float)",
    "msort": "np.sort(a, axis=0)",
    "alen": "len",
    "cast": "np.asarray(a).astype(dtype)",
    "math": "the module math",
    "warnings": "the module warnings",
}
"""What was something of its own: the name, and what is written today."""

_LIB = (
    "angle append apply_along_axis apply_over_axes argwhere array_split average bincount broadcast_arrays broadcast_to "
    "column_stack corrcoef cov delete diag diagflat diff digitize dsplit dstack ediff1d expand_dims extract eye "
    "fill_diagonal fliplr flipud flip gradient hamming hanning histogram histogram2d hsplit insert interp intersect1d "
    "isreal iscomplex ix_ kron loadtxt genfromtxt load save savez savez_compressed savetxt median meshgrid nan_to_num "
    "nanmax nanmean nanmedian nanmin nanstd nansum pad percentile piecewise place poly poly1d polyfit polyval quantile "
    "real imag roots rot90 savetxt select setdiff1d sinc split tile tri tril triu trim_zeros union1d unique unwrap "
    "vander vectorize vsplit"
)
LIB = tuple(_LIB.split())
"""Functions that programs wrote as np.lib.pad."""

METHODS = {
    "itemset": "a[index] = value",
    "newbyteorder": "a.view(a.dtype.newbyteorder(order))",
    "ptp": "np.ptp(a)",
}
"""Methods of arrays."""


def _row(name: str, modern: str, removed: str, change: str = "") -> OldName:
    return OldName(name, "numpy", "given back by `tfqueue run`", modern, change, "tfqueue.compat.numpy_names:", removed)


ROWS: tuple[OldName, ...] = (
    *(_row(f"np.{old}", new, "1.24", "np.bool_, np.int64, ... for a fixed width") for old, new in TYPES.items()),
    *(_row(f"np.{old}", f"np.{new}", "2.0") for old, new in SAME.items()),
    *(_row(f"np.{old}", new, "2.0") for old, new in OTHER.items()),
    _row("np.lib.*", "np.* (np.pad, np.tile, ...)", "2.0"),
    *(_row(f"np.ndarray.{old}", new, "2.0") for old, new in METHODS.items()),
    _row("np.fromstring", "np.frombuffer", "2.3", "frombuffer gives a view that cannot be written to: add .copy()"),
    _row("np.ndarray.tostring", "ndarray.tobytes", "2.3"),
)
