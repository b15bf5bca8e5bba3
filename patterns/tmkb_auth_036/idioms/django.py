"""Exports of deals with the rows and columns of the page, for a requester who may still see all of them."""

import csv
import io

from django.contrib.auth.decorators import login_required
from django.db import IntegrityError, models, transaction
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views.decorators.http import require_GET, require_POST, require_safe

from tmkb.authoring.stacks.django import User


class DealQuerySet(models.QuerySet):
    def visible_to(self, user):
        deals = self.filter(organization_id=user.organization_id)
        return deals if user.role == "admin" else deals.filter(manager_id=user.id)


class Deal(models.Model):
    organization = models.ForeignKey("stage.Organization", models.CASCADE)
    manager = models.ForeignKey("stage.User", models.DO_NOTHING, db_constraint=False)
    customer = models.TextField()
    amount = models.IntegerField()
    margin = models.IntegerField()
    objects = DealQuerySet.as_manager()


class Export(models.Model):
    """A finished file, and which deals and columns it contains."""

    requester = models.ForeignKey("stage.User", models.CASCADE)
    deal_ids = models.JSONField()
    columns = models.JSONField()
    content = models.TextField()


def deal_columns(user):
    return ["customer", "amount", "margin"] if user.role == "admin" else ["customer", "amount"]


def to_csv(columns, deals):
    sheet = io.StringIO()
    csv.writer(sheet).writerows([columns, *([getattr(deal, column) for column in columns] for deal in deals)])
    return sheet.getvalue()


@require_GET
@login_required
def list_deals(request):
    rows = Deal.objects.visible_to(request.user).values_list(*deal_columns(request.user))
    return JsonResponse(list(rows), safe=False)


# region idiom
@login_required
def create_export(request):
    columns = deal_columns(request.user)  # the page uses deal_columns and visible_to, too
    deals = list(Deal.objects.visible_to(request.user))
    export = Export(requester=request.user, columns=columns, deal_ids=[deal.pk for deal in deals])
    export.content = to_csv(columns, deals)
    export.save()
    return JsonResponse({"id": export.pk}, status=201)


# endregion


@require_safe
@login_required
def download_export(request, export_id):
    user = request.user
    export = get_object_or_404(Export, pk=export_id, requester=user)
    visible = set(Deal.objects.visible_to(user).values_list("pk", flat=True))
    if not (visible.issuperset(export.deal_ids) and set(deal_columns(user)).issuperset(export.columns)):
        raise Http404
    return HttpResponse(export.content, content_type="text/csv")


urlpatterns = [
    path("deals", list_deals),
    path("exports", require_POST(create_export)),
    path("exports/<int:export_id>", download_export),
]


def event_deals():
    """Bob and Alice of Acme and Mallory of Globex manage one deal each."""
    for user_id, organization_id, customer in [(2, 1, "Northwind"), (1, 1, "Southgate"), (3, 2, "Overseas")]:
        deal = Deal(manager_id=user_id, organization_id=organization_id, customer=customer)
        deal.amount, deal.margin = 100 * user_id, 7000 + user_id
        deal.save()


def event_assign(customer, user):
    """Give a deal to another manager, and to the organization of this manager."""
    manager = User.objects.get(name=user)
    Deal.objects.filter(customer=customer).update(manager=manager, organization_id=manager.organization_id)


def event_detach(customer):
    """Try to take a deal out of its organization."""
    try:
        with transaction.atomic():
            Deal.objects.filter(customer=customer).update(organization=None)
    except IntegrityError:
        pass


def state_exports():
    return list(Export.objects.order_by("id").values_list("requester_id", "content"))
