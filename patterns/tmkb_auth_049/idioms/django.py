"""Customers of organizations, with filters and sorting limited to the columns that the user's role may read."""

import base64
import json

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.db import models
from django.http import JsonResponse
from django.urls import path
from django.views.decorators.http import require_GET


class Customer(models.Model):
    name = models.TextField()
    city = models.TextField()
    discount = models.TextField()
    reset_token = models.TextField()
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


# region idiom
READABLE = {"member": {"name", "city"}, "admin": {"name", "city", "discount"}}


def checked(user, field):
    if field not in READABLE.get(user.role, ()):
        raise BadRequest
    return field


def own_customers(user):
    return Customer.objects.filter(organization_id=user.organization_id)


# endregion


def write_cursor(offset):
    return base64.urlsafe_b64encode(json.dumps({"offset": offset}).encode()).decode()


def read_cursor(cursor):
    try:
        return min(abs(int(json.loads(base64.urlsafe_b64decode(cursor))["offset"])), 10_000)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise BadRequest from None


@require_GET
@login_required
def list_customers(request):
    params = {name: values[0] for name, values in request.GET.lists()}
    offset = read_cursor(params.pop("cursor")) if "cursor" in params else 0
    customers, order = own_customers(request.user), ["pk"]
    if sort := params.pop("sort", None):
        field = checked(request.user, sort.removeprefix("-"))
        order.insert(0, f"-{field}" if sort.startswith("-") else field)
    for name, value in params.items():
        field, _, operator = name.partition("__")
        lookup = "startswith" if operator == "startswith" else "exact"
        customers = customers.filter(**{f"{checked(request.user, field)}__{lookup}": value})
    page = customers.order_by(*order)[offset : offset + 2]
    return JsonResponse({"names": [customer.name for customer in page], "next": write_cursor(offset + 2)})


urlpatterns = [path("customers", list_customers)]


def event_customer(**values):
    Customer.objects.create(**values)


def event_nested_cursor():
    return base64.urlsafe_b64encode(b"[" * 5000).decode()
