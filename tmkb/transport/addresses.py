"""The address of a client, also behind proxies."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_SITE = 64  # bits of an IPv6 address that name the network of one customer (RFC 6177)


def network(text: str) -> Network:
    """Return the network that ``text`` names: an address, or a network such as 10.0.0.0/8. Raises ValueError."""
    return ipaddress.ip_network(text)


def client(peer: str, forwarded: str, proxies: Collection[Network]) -> str:
    """Return the address of the client of a request; IPv6 addresses without the bits that a client can choose.

    Args:
        peer: the address that the request comes from; "" if it has none.
        forwarded: the header ``X-Forwarded-For``: addresses to which each proxy appends that of its client.
        proxies: the networks whose header is believed.
    """
    hops = [hop.strip() for hop in forwarded.split(",")] if proxies and forwarded else []
    address = _parsed(peer)
    while hops and address is not None and any(address in each for each in proxies):
        address = _parsed(hops.pop())
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, _SITE), strict=False))
    return "" if address is None else str(address)


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
