"""Invoices of organizations: admins reach all of their organization, other members those that they handle."""

import json

from django.contrib.auth.decorators import login_required
from django.db import models
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views.decorators.http import require_GET, require_POST


class Invoice(models.Model):
    total = models.IntegerField()
    state = models.TextField(default="open")
    created_by = models.ForeignKey("stage.User", models.CASCADE, related_name="+")
    handler = models.ForeignKey("stage.User", models.CASCADE, related_name="+")
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


@require_POST
@login_required
def create_invoice(request):
    if request.user.organization_id is None:
        return HttpResponse(status=403)
    invoice = Invoice.objects.create(
        total=json.loads(request.body)["total"],
        created_by=request.user,
        handler=request.user,
        organization_id=request.user.organization_id,
    )
    return JsonResponse({"id": invoice.id}, status=201)


# region idiom
def invoices_of(user):
    ours = Invoice.objects.filter(organization_id=user.organization_id)
    return ours if user.role == "admin" else ours.filter(handler=user)


@login_required
def show_invoice(request, invoice_id):
    invoice = get_object_or_404(invoices_of(request.user), pk=invoice_id)
    return JsonResponse({"total": invoice.total, "state": invoice.state})


# endregion


@require_POST
@login_required
def cancel_invoice(request, invoice_id):
    invoice = get_object_or_404(invoices_of(request.user), pk=invoice_id)
    invoice.state = "cancelled"
    invoice.save()
    return HttpResponse(status=204)


urlpatterns = [
    path("invoices", create_invoice),
    path("invoices/<int:invoice_id>", require_GET(show_invoice)),
    path("invoices/<int:invoice_id>/cancel", cancel_invoice),
]


def event_assign(invoice, handler):
    Invoice.objects.filter(pk=invoice).update(handler=handler)


def state_invoices():
    return list(Invoice.objects.order_by("id").values_list("total", "state"))
