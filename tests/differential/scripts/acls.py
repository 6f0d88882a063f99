"""What a broker without an authorizer answers to calls about rights, users, quotas, tokens and SASL."""


def acls(s):
    for version in range(1, 4):
        s.ask("DescribeAcls", version, resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)
        creation = {
            "resource_type": 2,
            "resource_name": "x",
            "resource_pattern_type": 3,
            "principal": "User:a",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
        }
        s.ask("CreateAcls", version, creations=[creation])
        wanted = {
            "resource_type_filter": 2,
            "resource_name_filter": "x",
            "pattern_type_filter": 3,
            "operation": 1,
            "permission_type": 1,
        }
        s.ask("DeleteAcls", version, filters=[wanted])
    s.ask("CreateAcls", 3, label="none", creations=[])
    s.ask("DeleteAcls", 3, label="none", filters=[])
    s.ask("CreateAcls", 3, label="two", creations=[creation, creation])
    s.ask(
        "DescribeAcls",
        3,
        label="bad-filter",
        resource_type_filter=99,
        pattern_type_filter=1,
        operation=1,
        permission_type=1,
    )


def sasl(s):
    for version in (0, 1):
        s.ask("SaslHandshake", version, on=f"h{version}", mechanism="PLAIN", retry=())
    for version in (0, 1, 2):
        s.ask("SaslAuthenticate", version, on=f"a{version}", auth_bytes=b"\0u\0p", retry=())


def tokens(s):
    s.ask(
        "CreateDelegationToken",
        3,
        owner_principal_type="User",
        owner_principal_name="x",
        max_lifetime_ms=1000,
        hide=("principal_name", "token_requester_principal_name"),
    )
    s.ask("RenewDelegationToken", 2, hmac=b"x", renew_period_ms=1000)
    s.ask("ExpireDelegationToken", 2, hmac=b"x", expiry_time_period_ms=1000)
    s.ask("DescribeDelegationToken", 3, owners=None)


def scram(s):
    user = s.name("u")
    s.ask("DescribeUserScramCredentials", 0, users=[{"name": user}], label="unknown")
    new = {"name": user, "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"x" * 32}
    s.ask("AlterUserScramCredentials", 0, deletions=[], upsertions=[new], label="new")
    s.ask("DescribeUserScramCredentials", 0, users=[{"name": user}], until=lambda a: not a.results[0].error_code)
    s.ask(
        "AlterUserScramCredentials",
        0,
        deletions=[],
        upsertions=[{**new, "mechanism": 2, "iterations": 8192, "salted_password": b"y" * 64}],
        label="second-mechanism",
    )
    s.ask(
        "DescribeUserScramCredentials",
        0,
        users=[{"name": user}],
        label="both",
        until=lambda a: len(a.results[0].credential_infos) > 1,
    )
    s.ask(
        "DescribeUserScramCredentials",
        0,
        users=None,
        label="all",
        pick=lambda a: [r for r in a["results"] if "~" in r["user"]],
    )
    for label, change in {
        "few-iterations": {"iterations": 1000},
        "many-iterations": {"iterations": 20_000},
        "unknown-mechanism": {"mechanism": 9},
        "no-name": {"name": ""},
    }.items():
        s.ask("AlterUserScramCredentials", 0, deletions=[], upsertions=[{**new, **change}], label=label)
    s.ask("AlterUserScramCredentials", 0, label="twice", deletions=[], upsertions=[new, new])
    s.ask(
        "AlterUserScramCredentials",
        0,
        label="delete-and-set",
        deletions=[{"name": user, "mechanism": 1}],
        upsertions=[new],
    )
    s.ask(
        "AlterUserScramCredentials",
        0,
        label="delete-unknown",
        deletions=[{"name": s.name("v"), "mechanism": 1}],
        upsertions=[],
    )
    s.ask(
        "AlterUserScramCredentials",
        0,
        label="delete-two",
        deletions=[{"name": user, "mechanism": n} for n in (1, 2)],
        upsertions=[],
    )
    for n in (1, 2):
        s.ask("AlterUserScramCredentials", 0, label="delete", deletions=[{"name": user, "mechanism": n}], upsertions=[])
    s.ask(
        "DescribeUserScramCredentials", 0, users=[{"name": user}], label="gone", until=lambda a: a.results[0].error_code
    )
    s.ask("DescribeUserScramCredentials", 0, users=[{"name": user}] * 2, label="asked-twice")


def quotas(s):
    user, client = s.name("u"), s.name("c")

    def alter(entity, *ops, version=1, **options):
        entry = {
            "entity": [{"entity_type": k, "entity_name": v} for k, v in entity.items()],
            "ops": [{"key": k, "value": v or 0.0, "remove": v is None} for k, v in ops],
        }
        return s.ask(
            "AlterClientQuotas", version, entries=[entry], validate_only=options.pop("validate_only", False), **options
        )

    def describe(*components, strict=False, **options):
        rows = [{"entity_type": kind, "match_type": match, "match": value} for kind, match, value in components]
        return s.ask("DescribeClientQuotas", 1, components=rows, strict=strict, **options)

    alter({"user": user}, ("producer_byte_rate", 1e9), ("request_percentage", 150.5), version=0)
    describe(("user", 0, user), until=lambda a: a.entries)
    alter({"user": user, "client-id": client}, ("consumer_byte_rate", 2e9), label="both")
    describe(("user", 0, user), ("client-id", 0, client), label="both", until=lambda a: a.entries)
    describe(("user", 0, user), label="without-the-client", until=lambda a: len(a.entries) > 1)
    describe(("user", 0, user), strict=True, label="strict")
    describe(("user", 0, s.name("nobody")), label="unknown")
    alter({"user": user}, ("request_percentage", None), label="remove-one")
    describe(
        ("user", 0, user), strict=True, label="one-removed", until=lambda a: a.entries and len(a.entries[0].values) == 1
    )
    alter({"user": user}, ("producer_byte_rate", 5.0), label="validate-only", validate_only=True)
    for label, entity, op in (
        ("unknown-key", {"user": user}, ("speed", 1.0)),
        ("unknown-type", {"house": "x"}, ("producer_byte_rate", 1.0)),
        ("no-entity", {}, ("producer_byte_rate", 1.0)),
        ("empty-name", {"user": ""}, ("producer_byte_rate", 1.0)),
        ("negative", {"user": user}, ("producer_byte_rate", -1.0)),
        ("fraction", {"user": user}, ("producer_byte_rate", 1.5)),
        ("address", {"ip": "no address"}, ("connection_creation_rate", 5.0)),
        ("wrong-key-for-ip", {"ip": "10.0.0.1"}, ("producer_byte_rate", 1.0)),
    ):
        alter(entity, op, label=label)
    describe(("house", 2, None), label="unknown-type")
    describe(("user", 7, None), label="match-7")
    describe(("user", 0, user), ("user", 2, None), label="type-twice")
    alter({"user": user}, ("producer_byte_rate", None), label="remove-all")
    alter({"user": user, "client-id": client}, ("consumer_byte_rate", None), label="remove-both")
    describe(("user", 0, user), label="gone", until=lambda a: not a.entries)


def changes_of_partitions(s):
    client, many = (
        s.name("c"),
        [{"name": s.name(f"t{n}"), "num_partitions": 6, "replication_factor": 1} for n in range(9)],
    )
    entity = [{"entity_type": "client-id", "entity_name": client}]
    ops = [{"key": "controller_mutation_rate", "value": 0.1, "remove": False}]
    s.ask("AlterClientQuotas", 1, entries=[{"entity": entity, "ops": ops}], validate_only=False)
    wanted = [{"entity_type": "client-id", "match_type": 0, "match": client}]
    s.ask("DescribeClientQuotas", 1, components=wanted, quiet=True, until=lambda a: a.entries)

    def ask(api, version, label, **fields):  # on a connection each: one that is over the quota rests after the answer
        s.ask(api, version, on=label, client=client, label=label, hide=("topic_id",), retry=(), **fields)

    ask("CreateTopics", 6, "one", topics=[{**many[0], "num_partitions": 1}])
    ask("CreateTopics", 6, "the-second-is-too-much-for-the-third", topics=many[1:3])
    ask("CreateTopics", 6, "refused", topics=many[3:4])
    ask("CreateTopics", 6, "validated", topics=many[3:4], validate_only=True)
    ask("CreateTopics", 6, "wrong-and-refused", topics=[{**many[3], "num_partitions": 0}, *many[4:5]])
    ask(
        "CreatePartitions", 3, "refused-partitions", topics=[{"name": many[0]["name"], "count": 7, "assignments": None}]
    )
    ask("DeleteTopics", 5, "refused-deletion", topic_names=[many[0]["name"], s.name("none")])
    s.ask("CreateTopics", 6, topics=many[5:6], label="another-client", hide=("topic_id",))
    ask("CreateTopics", 5, "old-version", topics=many[6:7])
    ask(
        "CreatePartitions",
        2,
        "old-version-of-partitions",
        topics=[{"name": many[6]["name"], "count": 7, "assignments": None}],
    )
    ask("DeleteTopics", 4, "old-version-of-deletion", topic_names=[many[6]["name"]])
