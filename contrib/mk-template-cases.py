#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites t/golden/template-cases.jsonl with what Python's Jinja2 renders,
set up as Hugging Face transformers does. Each line's template and variables
stay; to add a case, add a line with "template" and "vars".

    contrib/mk-template-cases.py t/golden/template-cases.jsonl

Where the words of an error are Jinja's or Python's own affair (syntax, numbers
of arguments), only that there is one is kept: "any"."""
import datetime
import json
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_body")
        return nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent,
                      separators=separators, sort_keys=sort_keys)


env = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True,
    extensions=[Generation, jinja2.ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = \
    lambda f: datetime.datetime(2026, 1, 15, 12, 30).strftime(f)

out = []
for line in open(sys.argv[1], encoding="utf-8"):
    case = json.loads(line)
    new = {"template": case["template"], "vars": case.get("vars", {})}
    try:
        new["rendered"] = env.from_string(new["template"]).render(**new["vars"])
    except Exception as e:
        name, text = type(e).__name__, str(e)
        own = ("Syntax" in name or "Assertion" in name or name == "IndexError" or
               "takes no arguments" in text or "range expected" in text)
        new["error"] = "any" if own else f"{name}: {text}"
    out.append(json.dumps(new, ensure_ascii=False) + "\n")
open(sys.argv[1], "w", encoding="utf-8").writelines(out)
