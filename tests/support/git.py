"""A Git repository on disk and over HTTPS, for tests of what is pulled from one."""

import base64
import contextlib
import http.server
import os
import ssl
import subprocess
import threading

QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
NAMES = ("-c", "user.name=Alice", "-c", "user.email=alice@example.com", "-c", "commit.gpgsign=false")


class Repository:
    """A repository with the branch `main`."""

    def __init__(self, path):
        self.path = path
        path.mkdir(exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words):
        """Run a git command; its output."""
        command = ["git", "-C", str(self.path), *NAMES, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | QUIET)
        return done.stdout.strip()

    def commit(self, **files):
        """Commit everything, after writing ``files``; the id of the commit. Two underscores in a name are a slash."""
        for name, text in files.items():
            target = self.path / name.replace("__", "/").replace("_yaml", ".yaml")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=Change")
        return self.git("rev-parse", "HEAD")

    def link(self, name, target):
        """Commit a symbolic link whose target may be one that no file system has."""
        command = ["git", "-C", str(self.path), "hash-object", "-w", "--stdin"]
        blob = subprocess.run(command, input=target, capture_output=True, text=True, check=True).stdout.strip()
        self.git("update-index", "--add", "--cacheinfo", f"120000,{blob},{name}")
        self.git("commit", "--quiet", "--message=Link")

    def replace(self, file, old, new):
        """Commit ``new`` in place of ``old`` in a file; the id of the commit."""
        path = self.path / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return self.commit()

    def source(self, fragment="#main"):
        """The option of `--patterns`."""
        return f"git+file://{self.path}{fragment}"


@contextlib.contextmanager
def https(repository, token, folder):
    """Serve a repository to users with ``token``; its source, and the file of the certificate, which is in ``folder``."""
    certificate, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("localhost", 0), _handler(repository, token))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"git+https://localhost:{server.server_port}/origin#main", certificate
    finally:
        server.shutdown()
        server.server_close()


def _handler(repository, token):
    expected = "Basic " + base64.b64encode(f"git:{token}".encode()).decode()

    class Handler(http.server.BaseHTTPRequestHandler):
        """Passes requests to git-http-backend(1)."""

        def do_GET(self):
            if self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="patterns"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            environment = (
                os.environ
                | QUIET
                | {
                    "GIT_PROJECT_ROOT": str(repository.path.parent),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "PATH_INFO": path,
                    "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                }
            )
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, stdout=subprocess.PIPE, check=True
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            headers["Content-Length"] = str(len(content))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_):
            pass

    return Handler
