"""What a user holds after a fit, or makes by hand: a density, its terms, and what is known of them."""

from .conditional import Conditional
from .existence import Integrability
from .fitted import Fitted
from .model import PolynomialModel
from .polynomial import PolynomialView

__all__ = ["Conditional", "Fitted", "Integrability", "PolynomialModel", "PolynomialView"]
