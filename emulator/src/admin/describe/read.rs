//! From a client's description to the broker's: all three kinds of entities are entities, so one code reads them.

use std::time::Duration;

use servicebus_broker::{EntityKind, QueueDescription, Tier};

use super::super::refusal::ServiceError;
use super::super::xml::Element;
use super::authorization::{KeyGenerator, read_rules};
use super::fields::{Fields, target_text};
use crate::namespace::AdminMetadata;

/// Longest metadata of a user, in characters.
const MAX_USER_METADATA: usize = 1024;

/// Sizes of entities in MiB that are sold: the first five in every tier, the rest in premium (service-bus-quotas).
const SIZES: [u64; 9] = [1024, 2048, 3072, 4096, 5120, 10_240, 20_480, 40_960, 81_920];

/// What a client wants an entity to be.
#[derive(Debug, Clone)]
pub(in crate::admin) struct Wanted {
    pub(in crate::admin) entity: QueueDescription,
    /// Of a subscription alone.
    pub(in crate::admin) dead_letters_filter_errors: bool,
    pub(in crate::admin) admin_metadata: AdminMetadata,
}

/// Reads a description. What it leaves out has its default; what clients of old versions do not know, or what is fixed,
/// stays as it is in `current`.
pub(in crate::admin) fn read_entity(
    element: &Element,
    kind: EntityKind,
    current: Option<&Wanted>,
    tier: Tier,
    mint: &KeyGenerator<'_>,
) -> Result<Wanted, ServiceError> {
    let fields = Fields { element, kind };
    refuse_unsupported(&fields)?;
    let admin_metadata = admin_metadata(
        &fields,
        current.map(|current| &current.admin_metadata),
        mint,
    )?;
    let mut entity = match kind {
        EntityKind::Queue => QueueDescription::of_tier(tier),
        EntityKind::Topic | EntityKind::Subscription => QueueDescription::default(),
    };
    if let Some(Wanted { entity: before, .. }) = current {
        entity.requires_duplicate_detection = before.requires_duplicate_detection;
        entity.requires_session = before.requires_session;
        entity.enable_partitioning = before.enable_partitioning;
        entity.max_message_size_in_kilobytes = before.max_message_size_in_kilobytes;
    }
    read_durations(&fields, &mut entity)?;
    entity.forward_to = fields.target("ForwardTo")?;
    entity.forward_dead_lettered_messages_to = fields.target("ForwardDeadLetteredMessagesTo")?;
    entity.status = fields.status()?.unwrap_or_default();
    for (name, flag) in [
        (
            "DeadLetteringOnMessageExpiration",
            &mut entity.dead_lettering_on_message_expiration,
        ),
        (
            "RequiresDuplicateDetection",
            &mut entity.requires_duplicate_detection,
        ),
        ("RequiresSession", &mut entity.requires_session),
        ("EnablePartitioning", &mut entity.enable_partitioning),
    ] {
        *flag = fields.flag(name)?.unwrap_or(*flag);
    }
    read_numbers(&fields, &mut entity, tier)?;
    if let Some(size) = fields.number("MaxSizeInMegabytes")? {
        let before = current.map(|current| &current.entity);
        let is_partitioned = entity.enable_partitioning;
        entity.max_size_in_megabytes = max_size(size, is_partitioned, before, tier)?;
    }
    let filter_errors = fields.flag("DeadLetteringOnFilterEvaluationExceptions")?;
    Ok(Wanted {
        entity,
        dead_letters_filter_errors: filter_errors.unwrap_or(true),
        admin_metadata,
    })
}

/// What the emulator does not do must not seem to be done.
fn refuse_unsupported(fields: &Fields<'_>) -> Result<(), ServiceError> {
    for name in [
        "FilteringMessagesBeforePublishing",
        "IsAnonymousAccessible",
        "EnableSubscriptionPartitioning",
        "IsClientAffine",
    ] {
        if fields.flag(name)? == Some(true) {
            let text =
                format!("The property '{name}' is not supported by the emulator; allowed: false.");
            return Err(ServiceError::parameter(text, name, "true"));
        }
    }
    Ok(())
}

fn read_durations(fields: &Fields<'_>, entity: &mut QueueDescription) -> Result<(), ServiceError> {
    if let Some(duration) = fields.duration("LockDuration")? {
        entity.lock_duration = duration;
    }
    if let Some(duration) = fields.endless("DefaultMessageTimeToLive")? {
        // The basic tier has no "for ever", so that the broker is shown what it means there.
        let is_bounded = entity.default_message_time_to_live.is_some();
        let endless = is_bounded.then_some(Duration::MAX);
        entity.default_message_time_to_live = duration.or(endless);
    }
    if let Some(duration) = fields.duration("DuplicateDetectionHistoryTimeWindow")? {
        entity.duplicate_detection_history_time_window = duration;
    }
    if let Some(duration) = fields.endless("AutoDeleteOnIdle")? {
        entity.auto_delete_on_idle = duration;
    }
    Ok(())
}

fn read_numbers(
    fields: &Fields<'_>,
    entity: &mut QueueDescription,
    tier: Tier,
) -> Result<(), ServiceError> {
    if let Some(count) = fields.number("MaxDeliveryCount")? {
        entity.max_delivery_count = u32::try_from(count).unwrap_or(u32::MAX);
    }
    if let Some(size) = fields.number("MaxMessageSizeInKilobytes")? {
        // Clients send back what the tier decides.
        let is_own = size.saturating_mul(1024) != tier.max_message_size();
        entity.max_message_size_in_kilobytes = is_own.then_some(size);
    }
    Ok(())
}

/// The size of an entity that was asked for, from what a client writes: one that the tier knows (observed 48), the same as
/// a partitioned entity shows it, or what the entity has, because clients send back what they read.
fn max_size(
    size: u64,
    is_partitioned: bool,
    before: Option<&QueueDescription>,
    tier: Tier,
) -> Result<u64, ServiceError> {
    if let Some(before) = before
        && [before.max_size_in_megabytes, before.capacity_in_megabytes()].contains(&size)
    {
        return Ok(before.max_size_in_megabytes);
    }
    let known = match tier {
        Tier::Basic | Tier::Standard => &SIZES[..5],
        Tier::Premium => &SIZES,
    };
    let whole = |asked: u64| QueueDescription {
        max_size_in_megabytes: asked,
        enable_partitioning: is_partitioned,
        ..QueueDescription::default()
    };
    let shown = |asked: &&u64| whole(**asked).capacity_in_megabytes() == size;
    if let Some(asked) = known.iter().find(shown) {
        return Ok(*asked);
    }
    if known.contains(&size) {
        return Ok(size);
    }
    let known: Vec<String> = known.iter().map(u64::to_string).collect();
    let text = format!(
        "The specified value '{size}' is invalid. The property 'MaxSizeInMegabytes', must be one of the following \
         values: {}.",
        known.join(";")
    );
    Err(ServiceError::parameter(
        text,
        "MaxSizeInMegabytes",
        &size.to_string(),
    ))
}

fn admin_metadata(
    fields: &Fields<'_>,
    current: Option<&AdminMetadata>,
    mint: &KeyGenerator<'_>,
) -> Result<AdminMetadata, ServiceError> {
    let default = AdminMetadata::default();
    let before = current.unwrap_or(&default);
    let target = |name| {
        let text = fields.text(name).map(str::trim);
        text.filter(|text| !text.is_empty()).map(target_text)
    };
    let user_metadata = fields.text("UserMetadata").map(str::to_owned);
    if let Some(text) = &user_metadata {
        let length = text.chars().count();
        if length > MAX_USER_METADATA {
            let message =
                format!("'UserMetadata' must have at most {MAX_USER_METADATA} characters.");
            let length = format!("{length} characters");
            return Err(ServiceError::parameter(message, "UserMetadata", &length));
        }
    }
    let rules = fields.part("AuthorizationRules");
    let rules = rules.map(|rules| read_rules(rules, &before.authorization_rules, mint));
    Ok(AdminMetadata {
        user_metadata,
        forward_to: target("ForwardTo"),
        forward_dead_lettered_messages_to: target("ForwardDeadLetteredMessagesTo"),
        authorization_rules: rules.transpose()?.unwrap_or_default(),
        enable_batched_operations: fields.flag("EnableBatchedOperations")?.unwrap_or(true),
        support_ordering: fields
            .flag("SupportOrdering")?
            .unwrap_or(before.support_ordering),
        enable_express: fields
            .flag("EnableExpress")?
            .unwrap_or(before.enable_express),
    })
}
