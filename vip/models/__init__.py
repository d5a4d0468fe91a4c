"""Adapters of libraries and services, loaded by name through `vip.registry`; nothing else imports them."""
