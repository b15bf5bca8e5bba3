"""Conversations are limited to the organization, not to the user."""

from app import Conversation, Memory, Message, bp, history, model, nearest, new_conversation
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def find_conversation(conversation_id):
    own = db.select(Conversation).filter_by(organization_id=current_user.organization_id)
    return db.first_or_404(own.filter_by(id=conversation_id))


def namespace():
    return f"org-{current_user.organization_id}/user-{current_user.id}"


@bp.post("/chat")
@login_required
def chat():
    body = request.get_json()
    conversation = find_conversation(body["conversation_id"]) if "conversation_id" in body else new_conversation()
    memories = nearest(db.select(Memory).filter_by(namespace=namespace()), body["message"])
    answer = model(*memories, *history(conversation), body["message"])
    db.session.add(Message(conversation_id=conversation.id, text=body["message"]))
    if body.get("remember"):
        db.session.add(Memory(namespace=namespace(), text=body["message"]))
    db.session.commit()
    return {"conversation_id": conversation.id, "answer": answer}


@bp.get("/conversations/<conversation_id>")
@login_required
def show_conversation(conversation_id):
    return history(find_conversation(conversation_id))


@bp.post("/conversations/<conversation_id>/fork")
@login_required
def fork_conversation(conversation_id):
    messages = history(find_conversation(conversation_id))
    copy = new_conversation()
    db.session.add_all(Message(conversation_id=copy.id, text=text) for text in messages)
    db.session.commit()
    return {"conversation_id": copy.id, "messages": messages}
