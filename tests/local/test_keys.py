"""Keys of the local KMS: those that encrypt are made without a pair that they never use."""

from collections.abc import Iterator
from typing import Any

import pytest

from local.cloud import LocalCloud


@pytest.fixture
def kms() -> Iterator[Any]:
    with LocalCloud() as cloud:
        yield cloud.client("kms")


def test_two_keys_encrypt_differently_and_each_text_is_read_by_its_own(kms: Any) -> None:
    made = [kms.create_key()["KeyMetadata"]["KeyId"] for _ in range(2)]
    texts = [kms.encrypt(KeyId=each, Plaintext=b"munge")["CiphertextBlob"] for each in made]

    read = [kms.decrypt(CiphertextBlob=text) for text in texts]

    assert [each["Plaintext"] for each in read] == [b"munge", b"munge"]
    assert [each["KeyId"].rsplit("/", 1)[-1] for each in read] == made
    assert len(set(texts)) == 2


def test_each_key_that_signs_has_a_pair_of_its_own(kms: Any) -> None:
    asked = {"KeyUsage": "SIGN_VERIFY", "KeySpec": "ECC_NIST_P256"}
    made = [kms.create_key(**asked)["KeyMetadata"]["KeyId"] for _ in range(2)]

    assert len({kms.get_public_key(KeyId=each)["PublicKey"] for each in made}) == 2
