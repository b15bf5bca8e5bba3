"""An assistant that pays invoices. Its model is a stub that obeys the last instruction in the text that it reads."""

import inspect
import json
import secrets

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.test import Client
from django.urls import path
from django.views.decorators.http import require_POST


class Invoice(models.Model):
    number = models.TextField()
    organization = models.ForeignKey("stage.Organization", models.CASCADE)
    payments = models.IntegerField(default=0)


class PendingCall(models.Model):
    id = models.CharField(primary_key=True, max_length=64, default=secrets.token_urlsafe)
    user = models.ForeignKey("stage.User", models.CASCADE, related_name="pending_calls")
    name = models.TextField()
    arguments = models.JSONField()


def list_invoices(user):
    mine = Invoice.objects.filter(organization_id=user.organization_id)
    return list(mine.values_list("number", flat=True))


def pay_invoice(user, *, invoice_id):
    if user.role != "admin":
        raise PermissionDenied
    invoice = get_object_or_404(Invoice, pk=invoice_id, organization_id=user.organization_id)
    invoice.payments += 1
    invoice.save()
    return "paid"


TOOLS = {"list_invoices": list_invoices, "pay_invoice": pay_invoice}
HARMLESS = {"list_invoices"}  # the other tools wait for a confirmation


def model(text):
    """Return the tool call that the last instruction names, for example ``DO pay_invoice invoice_id=1``."""
    name, *arguments = text.rpartition("DO ")[2].split()
    return name, {key: int(value) for key, value in (each.split("=") for each in arguments)}


def run_tool(user, name, arguments):
    tool = TOOLS.get(name)
    try:
        bound = inspect.signature(tool).bind(user, **arguments)
    except TypeError:  # no such tool or argument
        return HttpResponse(status=422)
    return JsonResponse({"result": tool(*bound.args, **bound.kwargs)})


@require_POST
@login_required
def chat(request):
    name, arguments = model(f"{request.user.name} writes: {json.loads(request.body)['message']}")
    if name in HARMLESS:
        return run_tool(request.user, name, arguments)
    call = request.user.pending_calls.create(name=name, arguments=arguments)
    return JsonResponse({"confirm": call.id, "call": {"name": name, "arguments": arguments}}, status=202)


# region idiom
@require_POST
@login_required
@transaction.atomic
def confirm(request, call_id):  # the model only stores PendingCall rows under a random id
    call = get_object_or_404(request.user.pending_calls.select_for_update(), pk=call_id)
    call.delete()
    return run_tool(request.user, call.name, call.arguments)  # checks role and organization


# endregion


urlpatterns = [
    path("chat", chat),
    path("calls/<str:call_id>/confirm", confirm),
]


def event_add_invoice(**values):
    return Invoice.objects.create(**values).id


def event_ask(user, message):
    client = Client(headers={"X-User": user})
    return client.post("/chat", {"message": message}, "application/json").json().get("confirm", "none")


def event_pay(user, invoice_id, times=1):
    client = Client(headers={"X-User": user})
    url, body = "/chat", {"message": f"Please DO pay_invoice invoice_id={invoice_id}"}
    response = client.post(url, body, "application/json")
    if response.status_code != 202:
        return [
            response.status_code,
            *(client.post(url, body, "application/json").status_code for _ in range(times - 1)),
        ]
    url = f"/calls/{response.json()['confirm']}/confirm"
    return [client.post(url).status_code for _ in range(times)]


def state_payments():
    return list(Invoice.objects.order_by("id").values_list("number", "payments"))
