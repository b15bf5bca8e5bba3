"""Payslips of organizations. Counts use the query for visible payslips; averages are of five or more people."""

from collections import defaultdict
from statistics import mean

from django import http
from django.contrib.auth.decorators import login_required
from django.db import models
from django.db.models import Avg, Count, Q
from django.urls import path
from django.views.decorators.http import require_GET


class JsonResponse(http.JsonResponse):
    """A response in JSON without spaces."""

    def __init__(self, data):
        super().__init__(data, json_dumps_params={"separators": (",", ":")})


class Payslip(models.Model):
    user_id = models.IntegerField()
    department = models.TextField()
    amount = models.IntegerField()
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


def chosen(request):
    """Return the filter of the list. Text that is no number is no filter."""
    above = request.GET.get("above", "")
    return Q(amount__gte=int(above)) if above.isdecimal() else Q()


# region idiom
def visible_payslips(user):  # for page and numbers
    slips = Payslip.objects.filter(organization_id=user.organization_id)
    return slips if user.role == "admin" else slips.filter(user_id=user.id)


@login_required
def list_payslips(request):
    slips = visible_payslips(request.user).filter(chosen(request))
    page = slips.order_by("pk").values_list("pk", flat=True)[:20]
    return JsonResponse({"ids": list(page), "total": slips.count()})


# endregion


@require_GET
@login_required
def count_by_department(request):
    slips = visible_payslips(request.user)
    return JsonResponse(dict(slips.values_list("department").annotate(Count("pk"))))


@require_GET
@login_required
def average_by_department(request):
    slips = Payslip.objects.filter(organization_id=request.user.organization_id)
    people = defaultdict(list)
    for department, _, pay in slips.values_list("department", "user_id").annotate(Avg("amount")):
        people[department].append(pay)
    return JsonResponse({department: mean(pays) for department, pays in people.items() if len(pays) >= 5})


urlpatterns = [
    path("payslips", require_GET(list_payslips)),
    path("payslips/departments", count_by_department),
    path("payslips/averages", average_by_department),
]


def event_pay(user_id, department, amounts, organization_id):
    """Pay one person several times."""
    for amount in amounts:
        Payslip.objects.create(user_id=user_id, department=department, amount=amount, organization_id=organization_id)


def event_pay_each(user_ids, department, amounts, organization_id):
    for user_id, amount in zip(user_ids, amounts, strict=True):
        event_pay(user_id, department, [amount], organization_id)
