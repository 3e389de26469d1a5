"""Upgrades: what every former version has stored at each of its writes, read by the present one."""
