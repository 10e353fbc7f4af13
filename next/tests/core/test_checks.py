import numpy as np
import pytest

from isodus._core.checks import finite_number, generator, one_of, positive_integer, seed_of


def test_values_that_pass():
    assert one_of("a", ("a", None), "x") == "a"
    assert one_of(None, ("a", None), "x") is None
    assert positive_integer(np.int32(3), "x") == 3
    assert positive_integer(0, "x", least=0) == 0
    assert finite_number(2, "x") == 2.0
    assert finite_number(np.float32(0.5), "x", above=0, least=0.5) == 0.5


@pytest.mark.parametrize(
    "call",
    [
        lambda: one_of("b", ("a", None), "the_name"),
        lambda: one_of(1, (True, "a"), "the_name"),
        lambda: one_of([1], (True, "a"), "the_name"),
        lambda: one_of(np.zeros(2), (True, "a"), "the_name"),
        *[lambda v=v: positive_integer(v, "the_name") for v in (0, -1, True, 1.0, "1", None)],
        *[lambda v=v: finite_number(v, "the_name") for v in (np.nan, np.inf, 10**400, True, "1", None, 1j)],
        lambda: finite_number(0, "the_name", above=0),
        lambda: finite_number(-1, "the_name", least=0),
        *[lambda v=v: generator(v, "the_name") for v in (-1, 1.0, True, "1", [1])],
        *[lambda v=v: seed_of(v, "the_name") for v in (-1, 1.0, True, "1", [1])],
    ],
)
def test_messages_name_the_argument(call):
    with pytest.raises(ValueError, match="^the_name must be"):
        call()


def test_generators():
    for seed in (0, np.int64(7), 10**40):
        assert generator(seed).random() == generator(seed).random()
    assert generator(None).random() != generator(None).random()
    same = np.random.default_rng(1)
    assert generator(same) is same
    legacy = [generator(np.random.RandomState(3)).random() for _ in range(2)]
    assert legacy[0] == legacy[1]
    moving = np.random.RandomState(3)
    assert generator(moving).random() != generator(moving).random()


def test_seeds():
    assert seed_of(None) == 0
    assert len({seed_of(s) for s in (0, 1, 2, 2**64, 2**64 + 1, 10**40, None)}) == 7
    assert seed_of(10**40) == seed_of(10**40) < 2**64
    assert seed_of(np.random.default_rng(5)) == seed_of(np.random.default_rng(5)) < 2**64
    moving = np.random.default_rng(5)
    assert seed_of(moving) != seed_of(moving)
    assert isinstance(seed_of(np.random.RandomState(0)), int)
