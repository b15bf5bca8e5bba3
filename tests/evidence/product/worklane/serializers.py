"""What objects look like in responses."""


def user(obj):
    return {"id": obj.id, "name": obj.name}


def organization(obj):
    return {"id": obj.id, "name": obj.name, "slug": obj.slug}


def membership(obj, with_rate=False):
    result = {
        "id": obj.user.id,
        "name": obj.user.name,
        "email": obj.user.email,
        "role": obj.role,
        "job_title": obj.job_title,
    }
    return result | {"hourly_rate": obj.hourly_rate} if with_rate else result


def team(obj):
    return {
        "id": obj.id,
        "name": obj.name,
        "lead_id": obj.lead_id,
        "members": [user(each.user) for each in obj.members],
    }


def project(obj):
    return {
        "id": obj.id,
        "name": obj.name,
        "description": obj.description,
        "visibility": obj.visibility,
        "owner": user(obj.owner),
        "archived": obj.archived_at is not None,
    }


def project_member(obj):
    return user(obj.user) | {"role": obj.role}


def document(obj, with_body=False):
    result = {
        "id": obj.id,
        "project_id": obj.project_id,
        "title": obj.title,
        "status": obj.status,
        "author": user(obj.author),
        "updated_at": obj.updated_at.isoformat(),
    }
    return result | {"body": obj.body} if with_body else result


def task(obj):
    return {
        "id": obj.id,
        "project_id": obj.project_id,
        "title": obj.title,
        "details": obj.details,
        "status": obj.status,
        "due_on": obj.due_on and obj.due_on.isoformat(),
        "creator": user(obj.creator),
        "assignee": obj.assignee and user(obj.assignee),
    }


def comment(obj):
    return {
        "id": obj.id,
        "author": user(obj.author),
        "text": obj.text,
        "internal": obj.internal,
        "created_at": obj.created_at.isoformat(),
    }


def invoice(obj, with_lines=False):
    result = {
        "id": obj.id,
        "number": obj.number,
        "customer": obj.customer,
        "status": obj.status,
        "issued_on": obj.issued_on.isoformat(),
        "total": obj.total,
    }
    lines = [{"text": each.text, "quantity": each.quantity, "unit_price": each.unit_price} for each in obj.lines]
    return result | {"lines": lines} if with_lines else result


def api_key(obj):
    return {
        "id": obj.id,
        "name": obj.name,
        "scopes": obj.scopes,
        "project_id": obj.project_id,
        "revoked": obj.revoked_at is not None,
    }


def share_link(obj):
    return {
        "id": obj.id,
        "document_id": obj.document_id,
        "token": obj.token,
        "expires_at": obj.expires_at and obj.expires_at.isoformat(),
        "revoked": obj.revoked_at is not None,
    }


def webhook(obj):
    return {"id": obj.id, "url": obj.url, "events": obj.events, "active": obj.active}


def delivery(obj):
    return {
        "id": obj.id,
        "event": obj.event,
        "payload": obj.payload,
        "delivered": obj.delivered_at is not None,
    }


def notification(obj):
    return {"id": obj.id, "text": obj.text, "read": obj.read_at is not None}


def export(obj):
    return {"id": obj.id, "kind": obj.kind, "status": obj.status}


def audit_entry(obj):
    return {
        "id": obj.id,
        "actor_id": obj.actor_id,
        "action": obj.action,
        "details": obj.details,
        "created_at": obj.created_at.isoformat(),
    }
