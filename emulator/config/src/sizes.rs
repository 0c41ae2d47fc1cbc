//! The available sizes of entities.

use servicebus_broker::{EntityDescription, Tier};

/// In MiB: the first five in every tier, the rest in premium (service-bus-quotas). Partitioned entities, which show 16 times
/// the requested size, have the first five in every tier.
const SIZES: [u64; 9] = [1024, 2048, 3072, 4096, 5120, 10_240, 20_480, 40_960, 81_920];

/// Returns the size in MiB for a requested `size`: one of the tier's (observed 48), the size that a partitioned entity shows
/// for it, or the entity's current one, because clients send back what they read. The error has the tier's sizes.
pub fn requested_size(
    size: u64,
    is_partitioned: bool,
    before: Option<&EntityDescription>,
    tier: Tier,
) -> Result<u64, &'static [u64]> {
    if let Some(before) = before
        && [before.max_size_in_megabytes, before.capacity_in_megabytes()].contains(&size)
    {
        return Ok(before.max_size_in_megabytes);
    }
    let known = match tier {
        Tier::Premium if !is_partitioned => &SIZES,
        Tier::Basic | Tier::Standard | Tier::Premium => &SIZES[..5],
    };
    let whole = |requested: u64| EntityDescription {
        max_size_in_megabytes: requested,
        enable_partitioning: is_partitioned,
        ..EntityDescription::default()
    };
    let shown = |requested: &&u64| whole(**requested).capacity_in_megabytes() == size;
    let found = known.iter().find(shown).copied();
    found
        .or_else(|| known.contains(&size).then_some(size))
        .ok_or(known)
}
