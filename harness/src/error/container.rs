//! Why there is no container.

use std::time::Duration;

use super::start::VERSION;
use crate::{text, variables::IMAGE_VARIABLE};

/// Why the emulator does not run as a container.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContainerError {
    /// Nothing that runs containers is there.
    #[error(
        "no container engine answers at {host}: {reason}; install and start Docker, or name another engine in DOCKER_HOST"
    )]
    NoEngine {
        /// Where it was looked for.
        host: String,
        /// What the attempt said.
        reason: String,
    },
    /// The harness's own image was not built.
    #[error(
        "the container engine has no image {image}; run `emulator/image/build` in the workspace, or name another image in {IMAGE_VARIABLE}"
    )]
    NoImage {
        /// The image.
        image: String,
    },
    /// The image that was named cannot be had.
    #[error(
        "the image {image}, named by {IMAGE_VARIABLE}, is not here and cannot be pulled: {reason}; build it, or name another image there"
    )]
    NamedImageMissing {
        /// The image.
        image: String,
        /// What the attempt to pull it said.
        reason: String,
    },
    /// The image is of another version.
    #[error(
        "the image {image} is version {found}, this harness needs {VERSION}; run `emulator/image/build` in the workspace of that version, or name another image in {IMAGE_VARIABLE}"
    )]
    Version {
        /// The image.
        image: String,
        /// The version that it says it has.
        found: String,
    },
    /// The image is of something else.
    #[error(
        "{image} is no image of this emulator: it has no label {label}; name another one in {IMAGE_VARIABLE}"
    )]
    Foreign {
        /// The image.
        image: String,
        /// The label with its version.
        label: &'static str,
    },
    /// The container was started and cannot be used.
    #[error("the container of {image} does not run: {reason}")]
    Failed {
        /// The image.
        image: String,
        /// What went wrong.
        reason: String,
    },
    /// The container did not come up in time.
    #[error("the container of {image} was not ready within {}: {reason}", text::seconds(*within))]
    Late {
        /// The image.
        image: String,
        /// How long it had.
        within: Duration,
        /// What the last attempt to use it said.
        reason: String,
    },
}
