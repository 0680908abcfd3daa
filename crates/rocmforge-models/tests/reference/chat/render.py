"""Renderings by Python's jinja2, set up as transformers sets it up: the judge of our chat templates.

Reads a JSON object from stdin with "conversations", "templates" (name and source) and "time", writes one JSON line for each template and
conversation: the text, or the kind of the exception. Needs jinja2 on the module path; with "transformers" as argument the real
transformers renders, to check this script.
"""

import datetime
import functools
import json
import sys

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def environment(time):
    import jinja2
    import jinja2.ext
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

        def _body(self, caller):
            return caller()

    class Dict:
        def __call__(self, *args, **kwargs):
            return dict(*args, **kwargs)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: time.strftime(form)
    made.globals["dict"] = Dict()
    return made


def normalized(messages):
    """Messages without the keys that are null, with reasoning under both of its names."""
    result = []
    for message in messages:
        message = {key: value for key, value in message.items() if value is not None}
        names = ("reasoning_content", "thinking", "reasoning")
        reasoning = next((message[name] for name in names if message.get(name) is not None), None)
        if reasoning is not None:
            message = {"thinking": reasoning, **message, "reasoning_content": reasoning}
        result.append(message)
    return result


@functools.lru_cache(maxsize=1)
def compiled(source, time):
    return environment(time).from_string(source)


def by_jinja(source, conversation, time):
    return compiled(source, time).render(
        messages=normalized(conversation["messages"]),
        tools=conversation.get("tools"),
        documents=conversation.get("documents"),
        add_generation_prompt=conversation["add_generation_prompt"],
        **TOKENS,
        **conversation.get("variables", {}),
    )


def by_transformers(source, conversation, time):
    from transformers.utils import chat_template_utils

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return time

    chat_template_utils.datetime = Clock
    messages = chat_template_utils._normalize_chat_messages(conversation["messages"])
    rendered, _ = chat_template_utils.render_jinja_template(
        conversations=[messages],
        tools=conversation.get("tools"),
        documents=conversation.get("documents"),
        chat_template=source,
        add_generation_prompt=conversation["add_generation_prompt"],
        **TOKENS,
        **conversation.get("variables", {}),
    )
    return rendered[0]


def main():
    render = by_transformers if "transformers" in sys.argv[1:] else by_jinja
    job = json.load(sys.stdin)
    time = datetime.datetime.fromtimestamp(job["time"], datetime.timezone.utc)
    for template in job["templates"]:
        for conversation in job["conversations"]:
            line = {"template": template["name"], "conversation": conversation["name"]}
            try:
                line["text"] = render(template["source"], conversation, time)
            except Exception as error:  # every failure of a template is an answer
                line["error"] = f"{type(error).__name__}: {error}"[:300]
            print(json.dumps(line))


main()
