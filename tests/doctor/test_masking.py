"""What is taken out of texts, and what stays because it explains a finding."""

from tmkb.doctor.masking import Mask


def test_values_of_our_own_variables_stay():
    env = {"TMKB_PATTERNS": "/nope/patterns", "LOG_LEVEL": "louder", "ACME": "hunter2hunter2"}
    mask = Mask("/home/ada", {}, [{"env": env}])

    assert mask.text("TMKB_PATTERNS names /nope/patterns; louder") == "TMKB_PATTERNS names /nope/patterns; louder"
    assert "hunter2" not in mask.text("hunter2hunter2")
    assert mask.entry({"env": env})["env"] == {**env, "ACME": "***"}


def test_addresses_of_persons_are_taken_out():
    assert Mask("/home/ada", {}, []).text("mail from ada.l@example.co.uk") == "mail from ***"


def test_the_home_folder_is_taken_out_also_without_its_slash():
    assert Mask("/home/ada", {}, []).without_home("/home/ada/x home/ada/y") == "~/x ~/y"
