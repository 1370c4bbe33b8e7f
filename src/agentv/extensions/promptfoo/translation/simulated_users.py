"""promptfoo's provider `promptfoo:simulated-user`, of `defaultTest` or of a test, as the `user` of a case.

Its config says who talks with the providers of the configuration. The prompt is their system message, and the output is
the whole conversation, with a line `---` between the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty
from agentv.extensions.promptfoo.translation.prompts import Prompts
from agentv.extensions.promptfoo.translation.source import FILE, Source, chat, items_of, mapping, text_node

SIMULATED_USER = "promptfoo:simulated-user"
_SERVERS = ("http", "webhook:", "websocket:", "ws:", "wss:")
_ROLES = ("user", "assistant", "system")
_ENDS = "the model that plays the user ends the conversation by a key of its JSON reply, not by '###STOP###'"
_MODEL = "it is 'user' under 'defaults' of .agentv/targets.yaml, else the judge; promptfoo asks its own service"


def is_simulated(provider: Node | None) -> bool:
    """Whether the provider of a test talks with the others."""
    named = provider.get("id") if isinstance(provider, MapNode) else provider
    return isinstance(named, Scalar) and named.text == SIMULATED_USER


def with_system_prompts(prompts: Prompts, source: Source) -> Prompts:
    """Several prompts as the system messages that promptfoo makes of them before a simulated user."""
    entries: list[Node] = []
    for number, one in enumerate(prompts.found, 1):
        label = one.label or text_node(f"prompt-{number}", one.content.at)
        entries.append(mapping(one.content, {"label": label, "prompt": _system(one.content, source)}))
    return replace(prompts, head={"prompts": ListNode(entries, entries[0].at)} if prompts.head else {})


def refuse_servers(providers: Iterable[Node], source: Source) -> None:
    """Report servers, which get a conversation as JSON in place of the prompt there."""
    for provider in providers:
        named = provider.get("id") if isinstance(provider, MapNode) else provider
        if isinstance(named, Scalar) and named.text.startswith(_SERVERS):
            hint = (
                "convert the file without it, then write a target with 'provider: http' and '{{ messages }}' in 'body'"
            )
            source.tell(named, "a server that talks with a simulated user has no equivalent", hint)


def with_user(provider: Node, prompt: Node | None, given: Mapping[str, Node], source: Source) -> dict[str, Node]:
    """The keys of a case with a simulated user: `user`, and the messages before it as `input`.

    Args:
        provider: with its `config`.
        prompt: the only one; None: there are several, which the suite has.
        given: the variables of the test, as they are written.
        source: reads files, and gets what has no equivalent.
    """
    config = provider.get("config") if isinstance(provider, MapNode) else None
    said = dict(config.items) if isinstance(config, MapNode) else {}
    source.note(provider, _ENDS, _MODEL)
    own, opening = said.pop("initialMessages", None), given.get("initialMessages")
    stateful = said.pop("stateful", None)
    if isinstance(stateful, Scalar) and stateful.value is True:
        hint = "agentv sends the whole conversation each time; remove it if the provider takes that"
        source.tell(stateful, "'stateful' of a simulated user has no equivalent", hint)
    goal, most = said.pop("instructions", None), said.pop("maxTurns", None)
    user = {"goal": goal if goal is not None and not is_empty(goal) else text_node("{{ instructions }}", provider.at)}
    if most is not None and not is_empty(most):
        user["max_turns"] = most
    for key, item in said.items():
        source.note(item, f"'{key}' of a simulated user is omitted: it is for promptfoo's own service")
    user["output"] = text_node("transcript", provider.at)
    first = [] if prompt is None else _system(prompt, source).items
    messages = [*first, *_messages(own if opening is None or is_empty(opening) else opening, source)]
    made: dict[str, Node] = {"user": mapping(provider, user)}
    return {**made, "input": ListNode(messages, provider.at)} if messages else made


def _system(prompt: Node, source: Source) -> ListNode:
    """Messages with a prompt as that of the system."""
    if not isinstance(prompt, Scalar):
        hint = "write the text of the system message"
        source.tell(prompt, "a prompt of messages before a simulated user has no equivalent", hint)
    return ListNode([mapping(prompt, {"role": text_node("system", prompt.at), "content": prompt})], prompt.at)


def _messages(node: Node | None, source: Source) -> list[Node]:
    """The messages before the user's first."""
    if isinstance(node, Scalar) and node.text.startswith(FILE):
        node = source.document(node.text, node)
    elif isinstance(node, Scalar) and not is_empty(node):
        node = chat(node.text, node.at)
    kept: list[Node] = []
    for one in items_of(node):
        role, content = (one.get(key) if isinstance(one, MapNode) else None for key in ("role", "content"))
        if isinstance(role, Scalar) and (role.text in _ROLES or "{{" in role.text) and isinstance(content, Scalar):
            kept.append(mapping(one, {"role": role, "content": content}))
        elif not is_empty(one):
            source.note(one, "this message is omitted: promptfoo sends only texts of a user, an assistant or a system")
    return kept
