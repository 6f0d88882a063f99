"""The blocking admin client."""

from __future__ import annotations

from kafkacodec.client.aio import admin as aio
from kafkacodec.client.blocking.topic_admin import TopicAdmin
from kafkacodec.client.core.foreign_names import knows
from kafkacodec.client.lifecycle import blocking

__all__ = ["Admin"]


@knows("Admin")
class Admin(TopicAdmin):
    """Administers a Kafka cluster; a context manager. Threads may share it.

    Each call finds the responsible brokers (controller, coordinators, leaders, all), and repeats requests after
    temporary failures, up to its ``timeout_ms`` or ``default_api_timeout_ms``. A call on several items does all that it
    can and raises `ItemErrors` if some fail; its ``errors`` and ``results`` are by item. If a broker is too old for a
    call, it raises UnsupportedVersion, which names the API and the first release that has it.

    Args:
        bootstrap_servers: ``host:port`` of some brokers, in one text with commas or as a list.
        **options: `kafkacodec.client.ClientSettings` describes them.

    Raises:
        TypeError, ValueError: an option is unknown or has a wrong value.
    """

    _kind = aio.Admin

    describe_configs = blocking(aio.Admin.describe_configs)
    incremental_alter_configs = blocking(aio.Admin.incremental_alter_configs)
    alter_configs = blocking(aio.Admin.alter_configs)
    list_config_resources = blocking(aio.Admin.list_config_resources)

    list_groups = blocking(aio.Admin.list_groups)
    describe_groups = blocking(aio.Admin.describe_groups)
    describe_streams_groups = blocking(aio.Admin.describe_streams_groups)
    delete_groups = blocking(aio.Admin.delete_groups)
    remove_members = blocking(aio.Admin.remove_members)

    list_share_group_offsets = blocking(aio.Admin.list_share_group_offsets)
    alter_share_group_offsets = blocking(aio.Admin.alter_share_group_offsets)
    delete_share_group_offsets = blocking(aio.Admin.delete_share_group_offsets)

    create_acls = blocking(aio.Admin.create_acls)
    describe_acls = blocking(aio.Admin.describe_acls)
    delete_acls = blocking(aio.Admin.delete_acls)

    describe_producers = blocking(aio.Admin.describe_producers)
    list_transactions = blocking(aio.Admin.list_transactions)
    describe_transactions = blocking(aio.Admin.describe_transactions)
    end_transactions = blocking(aio.Admin.end_transactions)
    abort_transaction = blocking(aio.Admin.abort_transaction)
    fence_producers = blocking(aio.Admin.fence_producers)

    describe_client_quotas = blocking(aio.Admin.describe_client_quotas)
    alter_client_quotas = blocking(aio.Admin.alter_client_quotas)

    describe_user_scram_credentials = blocking(aio.Admin.describe_user_scram_credentials)
    alter_user_scram_credentials = blocking(aio.Admin.alter_user_scram_credentials)

    create_delegation_token = blocking(aio.Admin.create_delegation_token)
    renew_delegation_token = blocking(aio.Admin.renew_delegation_token)
    expire_delegation_token = blocking(aio.Admin.expire_delegation_token)
    describe_delegation_tokens = blocking(aio.Admin.describe_delegation_tokens)

    alter_partition_reassignments = blocking(aio.Admin.alter_partition_reassignments)
    list_partition_reassignments = blocking(aio.Admin.list_partition_reassignments)
    elect_leaders = blocking(aio.Admin.elect_leaders)
    describe_log_dirs = blocking(aio.Admin.describe_log_dirs)
    alter_replica_log_dirs = blocking(aio.Admin.alter_replica_log_dirs)

    describe_cluster = blocking(aio.Admin.describe_cluster)
    describe_features = blocking(aio.Admin.describe_features)
    update_features = blocking(aio.Admin.update_features)

    describe_metadata_quorum = blocking(aio.Admin.describe_metadata_quorum)
    add_raft_voter = blocking(aio.Admin.add_raft_voter)
    remove_raft_voter = blocking(aio.Admin.remove_raft_voter)
