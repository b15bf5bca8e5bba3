"""Invoices that only administrators void. The function that voids an invoice checks the caller itself."""

import json

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import path
from django.utils.html import format_html
from django.views.decorators.http import require_POST, require_safe


class Invoice(models.Model):
    state = models.TextField(default="open")
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


class CreditNote(Invoice):
    pass


# region idiom
def void_invoice(actor, invoice_id):
    invoices = Invoice.objects.filter(organization_id=actor.organization_id, organization__isnull=False)
    invoice = get_object_or_404(invoices, pk=invoice_id)
    if actor.role != "admin":
        raise PermissionDenied
    invoice.state = "void"
    invoice.save(update_fields=["state"])


# endregion

PAGE = "<p>Invoice {} is {}.</p>"
FORM = '<form method="post" action="/invoices/{}/void"><button>Void</button></form>'


@require_safe
@login_required
def show(request, invoice_id):
    invoice = get_object_or_404(Invoice, pk=invoice_id, organization_id=request.user.organization_id)
    form = format_html(FORM, invoice.id) if request.user.role == "admin" else ""
    return HttpResponse(format_html(PAGE, invoice.id, invoice.state) + form)


@require_POST
@login_required
def void(request, invoice_id):
    void_invoice(request.user, invoice_id)
    return redirect(show, invoice_id)


@require_POST
@login_required
@transaction.atomic
def void_by_api(request):
    for invoice_id in json.loads(request.body)["ids"]:
        void_invoice(request.user, invoice_id)
    return HttpResponse(status=204)


urlpatterns = [
    path("invoices/<int:invoice_id>", show),
    path("invoices/<int:invoice_id>/void", void),
    path("api/invoices/void", void_by_api),
]


def event_issue(organization, kind="invoice"):
    """Create an invoice or a credit note, and return its id."""
    model = {"invoice": Invoice, "credit note": CreditNote}[kind]
    return {"id": model.objects.create(organization_id=organization).pk}


def state_invoices():
    return list(Invoice.objects.order_by("id").values_list("state", flat=True))
