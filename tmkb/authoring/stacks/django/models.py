"""Organizations, users and documents."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models


class Organization(models.Model):  # type: ignore[misc]  # Django has no types
    """A tenant."""

    name = models.TextField()

    class Meta:
        """The app to which the model belongs."""

        app_label = "stage"


class User(AbstractBaseUser):  # type: ignore[misc]  # as above
    """A user who signs in. Without an organization after leaving it."""

    USERNAME_FIELD = "name"
    name = models.TextField(unique=True)
    role = models.TextField(default="member")
    organization = models.ForeignKey(Organization, models.SET_NULL, null=True)

    class Meta:
        """The app to which the model belongs."""

        app_label = "stage"


class Document(models.Model):  # type: ignore[misc]  # as above
    """A document of one user and one organization."""

    title = models.TextField()
    state = models.TextField(default="new")
    owner = models.ForeignKey(User, models.CASCADE)
    organization = models.ForeignKey(Organization, models.CASCADE)

    class Meta:
        """The app to which the model belongs."""

        app_label = "stage"
