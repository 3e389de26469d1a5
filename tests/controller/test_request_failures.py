"""What a refused request says enters the core without the values that it quotes."""

from __future__ import annotations

import pytest

from mcad.controller.request_failures import LEFT_OUT, answer_of, without_values
from mcad.kube.errors import ApiError

ENV = "spec.containers[0].env[0].value: "


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (f'{ENV}Invalid value: "s3cret": too short', f"{ENV}Invalid value: {LEFT_OUT}: too short"),
        ('data: Invalid value: "a\\"s3cret": no', f"data: Invalid value: {LEFT_OUT}: no"),
        (
            'x: Invalid value: {"password":"s3cret"}: spec: Forbidden',
            f"x: Invalid value: {LEFT_OUT}: spec: Forbidden",
        ),
        ('x: Invalid value: map[string]string{"a":"s3cret"}: no', None),
        ('x: Duplicate value: "s3cret"', f"x: Duplicate value: {LEFT_OUT}"),
        (
            'x: Unsupported value: "s3cret": supported values: "Always", "Never"',
            f'x: Unsupported value: {LEFT_OUT}: supported values: "Always", "Never"',
        ),
        (
            'a: Invalid value: "s3cret": no, b: Invalid value: "s3cret": no',
            f"a: Invalid value: {LEFT_OUT}: no, b: Invalid value: {LEFT_OUT}: no",
        ),
        ("x: Invalid value: -1: must be 0 or more", "x: Invalid value: -1: must be 0 or more"),
        ("x: Invalid value: field is immutable", "x: Invalid value: field is immutable"),
    ],
)
def test_quoted_values_are_left_out(words: str, wanted: str | None) -> None:
    assert "s3cret" not in without_values(words)
    if wanted is not None:
        assert without_values(words) == wanted


def test_an_answer_has_no_quoted_value() -> None:
    error = ApiError(422, "Invalid", f'Pod "a" is invalid: {ENV}Invalid value: "s3cret": no')

    answer = answer_of(error)

    assert answer.message == f'“Pod "a" is invalid: {ENV}Invalid value: {LEFT_OUT}: no”'
