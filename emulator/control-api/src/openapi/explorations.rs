//! The routes of explorations.

use super::Description;
use crate::{ExplorationReport, ExplorationRequest, ExplorationRun, RunResult, StartedExploration};

const NUMBER: &str = "The id of the exploration.";
const NONE: &str = "There is none of this id.";

pub(crate) fn describe(d: &mut Description) {
    d.group(
        "explorations",
        "A test runs again and again, each time with something else going wrong.",
    );
    d.route("POST /$emulator/v1/explorations", "beginExploration").summary("Begins an exploration.")
                .more(
                    "The client asks for one run after the other, makes it, and tells its result. The first two have no fault. \
                     An exploration of which nothing is asked for 600 s, or what `keep` says, is removed.",
                )
                .takes::<ExplorationRequest>()
                .answers::<StartedExploration>(201, "The exploration.")
                .refuses(409, "There are 16 already.");
    d.route("GET /$emulator/v1/explorations/{id}", "showExploration")
        .summary("Tells what an exploration has found so far.")
        .named("id", NUMBER)
        .answers::<ExplorationReport>(200, "The report.")
        .refuses(404, NONE);
    d.route(
        "DELETE /$emulator/v1/explorations/{id}",
        "removeExploration",
    )
    .summary("Removes an exploration and the namespace of its run.")
    .named("id", NUMBER)
    .done(204, "It is gone.")
    .refuses(404, NONE);
    runs(d);
}

fn runs(d: &mut Description) {
    d.route("POST /$emulator/v1/explorations/{id}/runs", "nextRun").summary("Makes the namespace of the next run.")
                .more(
                    "Its faults are set, operations are recorded, and its clock steps by itself (`clock/auto`).",
                )
                .named("id", NUMBER)
                .answers::<ExplorationRun>(201, "The run.")
                .done(204, "There are no more runs.")
                .refuses(404, NONE)
                .refuses(
                    409,
                    "The run before has no result yet, or no namespace can be made.",
                );
    d.route(
        "POST /$emulator/v1/explorations/{id}/runs/{number}/result",
        "endRun",
    )
    .summary("Tells how a run ended, and removes its namespace.")
    .named("id", NUMBER)
    .named("number", "The number of the run.")
    .takes::<RunResult>()
    .done(204, "It is taken.")
    .refuses(404, "There is no such exploration or run.")
    .refuses(409, "The run has its result already.");
}
