"""What axes and losses must keep, also those of users: checks against independent calculations."""

from .axis import check_axis
from .loss import check_loss

__all__ = ["check_axis", "check_loss"]
