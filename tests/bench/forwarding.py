"""The time of a request at a server alone, at the owner of its session, and forwarded to it: `python -m tests.bench.forwarding`."""

import time

from tests.cluster.servers import KEY, Client, Redis
from tests.support.process import HttpServer

COUNT = 100


def median(client, at):
    """The median time of a request, in milliseconds."""
    times = []
    for number in range(COUNT):
        began = time.perf_counter()
        client.ask("ping", at, number)
        times.append(time.perf_counter() - began)
    return sorted(times)[COUNT // 2] * 1000


def main():
    """Print the medians, and their ratios to the server alone."""
    redis = Redis()
    variables = {"TMKB_STATE_KEY": KEY, "TMKB_CLUSTER": redis.url}
    with HttpServer() as alone, HttpServer(env=variables) as owner, HttpServer(env=variables) as other:
        servers = [alone, owner, other]
        single, shared = Client(servers, at=0), Client(servers, at=1)
        found = {"alone": median(single, 0), "at the owner": median(shared, 1), "forwarded": median(shared, 2)}
        for name, milliseconds in found.items():
            print(f"{name:14}{milliseconds:6.1f} ms {milliseconds / found['alone']:5.1f}")
    redis.kill()


if __name__ == "__main__":
    main()
