"""Bids that admins delete by a timestamp. Each endpoint except restore finds only live bids."""

import json

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.http import require_POST


class Bid(models.Model):
    price = models.IntegerField()
    text = models.TextField()
    deleted_at = models.DateTimeField(null=True)
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


def live_bids(user):
    return Bid.objects.filter(organization_id=user.organization_id, deleted_at=None)


def require_admin(user):
    if user.role != "admin":
        raise PermissionDenied


# region idiom
@transaction.atomic
def update_bid(user, bid_id, change):
    live = Bid.objects.filter(organization_id=user.organization_id, deleted_at=None)
    bid = get_object_or_404(live.select_for_update(), pk=bid_id)
    for field in change.keys() & {"price", "text"}:
        setattr(bid, field, change[field])
    bid.save()


# endregion


@method_decorator(login_required, name="dispatch")
class Bids(View):
    def get(self, request):
        bids = [{"id": bid.id, "text": bid.text} for bid in live_bids(request.user)]
        return JsonResponse(bids, safe=False)

    def post(self, request):
        user = request.user
        if user.organization_id is None:
            return HttpResponse(status=403)
        body = json.loads(request.body)
        bid = Bid.objects.create(price=body["price"], text=body["text"], organization_id=user.organization_id)
        return JsonResponse({"id": bid.id}, status=201)


@method_decorator(login_required, name="dispatch")
class OneBid(View):
    def get(self, request, bid_id):
        bid = get_object_or_404(live_bids(request.user), pk=bid_id)
        return JsonResponse({"price": bid.price, "text": bid.text})

    def patch(self, request, bid_id):
        update_bid(request.user, bid_id, json.loads(request.body))
        return HttpResponse(status=204)

    def delete(self, request, bid_id):
        bid = get_object_or_404(live_bids(request.user), pk=bid_id)
        require_admin(request.user)
        bid.deleted_at = timezone.now()
        bid.save(update_fields=["deleted_at"])
        return HttpResponse(status=204)


@require_POST
@login_required
def copy_bid(request, bid_id):
    bid = get_object_or_404(live_bids(request.user), pk=bid_id)
    copy = Bid.objects.create(price=bid.price, text=bid.text, organization_id=bid.organization_id)
    return JsonResponse({"id": copy.id}, status=201)


@require_POST
@login_required
def restore_bid(request, bid_id):
    bid = get_object_or_404(Bid, pk=bid_id, organization_id=request.user.organization_id)
    require_admin(request.user)
    bid.deleted_at = None
    bid.save(update_fields=["deleted_at"])
    return HttpResponse(status=204)


urlpatterns = [
    path("bids", Bids.as_view()),
    path("bids/<int:bid_id>", OneBid.as_view()),
    path("bids/<int:bid_id>/copies", copy_bid),
    path("bids/<int:bid_id>/restore", restore_bid),
]


def state_bids():
    rows = Bid.objects.order_by("id").values_list("id", "price", "text", "deleted_at", "organization_id")
    return [[*values, deleted_at and deleted_at.isoformat(), of] for *values, deleted_at, of in rows]
