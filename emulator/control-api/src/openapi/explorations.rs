//! The routes of explorations.

use super::Description;
use crate::{ExplorationReport, ExplorationRequest, ExplorationRun, RunResult, StartedExploration};

const NUMBER: &str = "The id of the exploration.";
const NONE: &str = "No exploration has this id.";

pub(crate) fn describe(d: &mut Description) {
    d.group(
        "explorations",
        "Explorations: runs of a test, each with other faults.",
    );
    d.route("POST /$emulator/v1/explorations", "beginExploration")
        .summary(
            "Starts an \
        exploration.",
        )
        .more(
            "The client requests one run after the other, executes it and reports its \
                        result. The first two runs have no faults. The emulator removes an \
                        exploration after 600 s without a request, or after the time that `keep` \
                        sets.",
        )
        .takes::<ExplorationRequest>()
        .answers::<StartedExploration>(201, "The exploration.")
        .refuses(409, "There are already 16 explorations.");
    d.route("GET /$emulator/v1/explorations/{id}", "showExploration")
        .summary("Returns the report of an exploration so far.")
        .named("id", NUMBER)
        .answers::<ExplorationReport>(200, "The report.")
        .refuses(404, NONE);
    d.route(
        "DELETE /$emulator/v1/explorations/{id}",
        "removeExploration",
    )
    .summary("Removes an exploration and the namespace of its run.")
    .named("id", NUMBER)
    .done(204, "Removed.")
    .refuses(404, NONE);
    runs(d);
}

fn runs(d: &mut Description) {
    d.route("POST /$emulator/v1/explorations/{id}/runs", "nextRun")
        .summary(
            "Creates the \
        namespace of the next run.",
        )
        .more(
            "The emulator has scripted its faults, records its operations, and advances \
                        its clock automatically (`clock/auto`).",
        )
        .named("id", NUMBER)
        .answers::<ExplorationRun>(201, "The run.")
        .done(204, "The exploration is complete.")
        .refuses(404, NONE)
        .refuses(
            409,
            "The previous run has no result yet, or the namespace cannot be created.",
        );
    d.route(
        "POST /$emulator/v1/explorations/{id}/runs/{number}/result",
        "endRun",
    )
    .summary("Reports the result of a run, and removes its namespace.")
    .named("id", NUMBER)
    .named("number", "The number of the run.")
    .takes::<RunResult>()
    .done(204, "Recorded.")
    .refuses(404, "The exploration or the run does not exist.")
    .refuses(409, "The run already has a result.");
}
