"""Tickets, which only their authors delete, one or many."""

import json

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_http_methods, require_POST


class Ticket(models.Model):
    subject = models.TextField()
    author = models.ForeignKey("stage.User", models.CASCADE)
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


# region idiom
@transaction.atomic
def delete_tickets(user, ids):
    mine = Ticket.objects.filter(organization_id=user.organization_id, author=user)
    found = mine.filter(pk__in=ids).order_by("pk").select_for_update(of=("self",))
    if {ticket.pk for ticket in found} != set(ids):
        raise Http404
    for ticket in found:
        ticket.delete()


# endregion


@require_POST
@login_required
def create(request):
    if request.user.organization_id is None:
        raise PermissionDenied
    subject = json.loads(request.body)["subject"]
    ticket = Ticket.objects.create(subject=subject, author=request.user, organization_id=request.user.organization_id)
    return JsonResponse({"id": ticket.id}, status=201)


@require_http_methods(["DELETE"])
@login_required
def delete_one(request, ticket_id):
    delete_tickets(request.user, [ticket_id])
    return HttpResponse(status=204)


@require_POST
@login_required
def delete_many(request):
    try:
        ids = [int(each) for each in json.loads(request.body)["ids"]]
    except (ValueError, TypeError, KeyError):
        raise BadRequest from None
    delete_tickets(request.user, ids)
    return HttpResponse(status=204)


urlpatterns = [
    path("tickets", create),
    path("tickets/delete", delete_many),
    path("tickets/<int:ticket_id>", delete_one),
]


def event_move(ticket, organization):
    Ticket.objects.filter(pk=ticket).update(organization_id=organization)


def event_hand_over(ticket, author):
    Ticket.objects.filter(pk=ticket).update(author_id=author)


def state_tickets():
    return list(Ticket.objects.order_by("pk").values_list("subject", flat=True))
