"""Agents that work on files of an organization for a user, with signed tokens.

A user opens a task, and the orchestrator gets a token for it. A version of the code lets the holder of a token delegate
to another agent, and has the tools `read` and `write`, which agents call with their tokens.
"""

import time

import jwt
from flask import Blueprint, abort, current_app, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db

KEY = "the key with which the token service signs"
AUDIENCE = "https://tools.example"


class File(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    content = mapped_column(db.String, nullable=False)
    owner_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Task(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    open = mapped_column(db.Boolean, nullable=False, default=True)


bp = Blueprint("agents", __name__)


def requested():
    """Return the body, which names an agent, its tools and its files."""
    body = request.get_json()
    tools, files = body.get("tools"), body.get("files")
    if not isinstance(body.get("agent"), str) or not isinstance(tools, list) or not isinstance(files, list):
        abort(422)
    if not all(isinstance(tool, str) for tool in tools) or not all(type(file) is int for file in files):
        abort(422)
    return body


def issued(claims):
    return jwt.encode(claims, KEY, algorithm="HS256")


def presented():
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def verified():
    return jwt.decode(presented(), KEY, algorithms=["HS256"], audience=AUDIENCE, options={"require": ["exp", "sub"]})


@bp.errorhandler(jwt.InvalidTokenError)
def invalid_token(_error):
    return "", 401


@bp.post("/tasks")
@login_required
def open_task():
    body = requested()
    task = Task(user_id=current_user.id)
    db.session.add(task)
    db.session.commit()
    claims = {"aud": AUDIENCE, "sub": str(current_user.id), "task": task.id, "exp": int(time.time()) + 3600}
    grant = {"tools": body["tools"], "files": body["files"], "act": {"sub": body["agent"]}}
    return {"id": task.id, "token": issued(claims | grant)}, 201


@bp.post("/tasks/<int:task_id>/close")
@login_required
def close_task(task_id):
    task = db.first_or_404(db.select(Task).filter_by(id=task_id, user_id=current_user.id))
    task.open = False
    db.session.commit()
    return "", 204


def file_of(user_id, tool, file_id):
    """Return a file that the user may use now: members read all files of their organization and write their own."""
    user = db.session.get(User, int(user_id)) or abort(401)
    file = db.first_or_404(db.select(File).filter_by(id=file_id, organization_id=user.organization_id))
    if tool == "write" and user.role != "admin" and file.owner_id != user.id:
        abort(403)
    return file


def written(file, claims):
    """Store the content of the request, and return by whom it was written."""
    file.content = request.get_json()["content"]
    db.session.commit()
    actors, act = [], claims["act"]
    while act:
        actors, act = [act["sub"], *actors], act.get("act")
    return {"user": claims["sub"], "agents": actors}


def event_add_file(content, owner_id, organization_id):
    file = File(content=content, owner_id=owner_id, organization_id=organization_id)
    db.session.add(file)
    db.session.flush()
    return file.id


def event_delegate(token, **body):
    """Return the token that the holder of ``token`` gets for another agent, or ``none``."""
    headers = {"Authorization": f"Bearer {token}"}
    response = current_app.test_client().post("/delegations", json={"agent": "helper", **body}, headers=headers)
    return response.json["token"] if response.status_code == 201 else "none"


def event_forge(files):
    """Return a token without a signature."""
    claims = {"aud": AUDIENCE, "sub": "2", "task": 1, "exp": int(time.time()) + 3600, "act": {"sub": "reader"}}
    return jwt.encode(claims | {"tools": ["read", "write"], "files": files}, None, algorithm="none")


def state_files():
    return [[file.id, file.content] for file in db.session.scalars(db.select(File).order_by(File.id))]
