"""`scipy.special` on arrays and traced values, in files by family, each of which says what it exports."""

from . import bessel as _bessel
from . import convenience as _convenience
from . import elliptic as _elliptic
from . import errors as _errors
from . import gamma as _gamma
from . import hypergeometric as _hypergeometric
from . import polynomials as _polynomials
from . import refused as _refused
from . import statistics as _statistics
from . import sums as _sums
from . import wave as _wave
from .bessel import *  # noqa: F403
from .convenience import *  # noqa: F403
from .elliptic import *  # noqa: F403
from .errors import *  # noqa: F403
from .gamma import *  # noqa: F403
from .hypergeometric import *  # noqa: F403
from .polynomials import *  # noqa: F403
from .refused import *  # noqa: F403
from .statistics import *  # noqa: F403
from .sums import *  # noqa: F403
from .wave import *  # noqa: F403

__all__ = [
    *_bessel.__all__,
    *_convenience.__all__,
    *_elliptic.__all__,
    *_errors.__all__,
    *_gamma.__all__,
    *_hypergeometric.__all__,
    *_polynomials.__all__,
    *_refused.__all__,
    *_statistics.__all__,
    *_sums.__all__,
    *_wave.__all__,
]
