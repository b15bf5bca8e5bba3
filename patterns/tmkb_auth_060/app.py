"""An assistant with conversations and a long-term memory. A version of the code finds both for a request.

The model is a stub that repeats its whole prompt. The memory is a stub of a vector store: it returns the texts of a
namespace that have the most words of the question.
"""

import re
import secrets

from flask import Blueprint, abort
from flask_login import current_user
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Conversation(db.Model):
    id = mapped_column(db.String, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Message(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    conversation_id = mapped_column(db.ForeignKey("conversation.id"), nullable=False)
    text = mapped_column(db.String, nullable=False)


class Memory(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    namespace = mapped_column(db.String, nullable=False)
    text = mapped_column(db.String, nullable=False)


bp = Blueprint("assistant", __name__)


def words(text):
    return set(re.findall(r"\w+", text.lower()))


def nearest(memories, question):
    """Return the texts of at most three of the selected memories."""
    texts = [memory.text for memory in db.session.scalars(memories)]
    return sorted(texts, key=lambda text: -len(words(text) & words(question)))[:3]


def model(*prompt):
    return " ".join(prompt)


def history(conversation):
    messages = db.select(Message).filter_by(conversation_id=conversation.id).order_by(Message.id)
    return [message.text for message in db.session.scalars(messages)]


def new_conversation():
    if current_user.organization_id is None:
        abort(403)
    conversation = Conversation(
        id=secrets.token_urlsafe(), user_id=current_user.id, organization_id=current_user.organization_id
    )
    db.session.add(conversation)
    db.session.flush()
    return conversation


def event_hire(name, user_id, organization_id):
    db.session.add(User(id=user_id, name=name, organization_id=organization_id))


def state_of_bob():
    """Return the messages of Bob's conversations, and the memories about him."""
    messages = db.select(Message.text).join(Conversation).where(Conversation.user_id == 2).order_by(Message.id)
    memories = db.select(Memory.text).where(Memory.namespace.endswith("user-2")).order_by(Memory.id)
    return [*db.session.scalars(messages), *db.session.scalars(memories)]
