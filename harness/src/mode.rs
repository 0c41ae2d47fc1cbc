//! Where the emulator runs.
//!
//! The builder chooses the mode, else `SERVICEBUS_HARNESS_MODE`, else it is in process, or process without the feature
//! `in-process`. A mode that is not available is an error; the harness never switches to another one silently.

use std::{env, fmt, str::FromStr};

use crate::{
    error::{Error, ErrorKind},
    variables::MODE_VARIABLE,
};

/// Where the emulator of a [`ServiceBus`](crate::ServiceBus) runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Inside the test's own process, on a runtime and threads of its own. Requires no installation, and the feature
    /// `in-process`, which is a default feature.
    #[cfg_attr(feature = "in-process", default)]
    InProcess,
    /// As a child process: the `servicebus-emulator` binary. The default without the feature `in-process`.
    #[cfg_attr(not(feature = "in-process"), default)]
    Process,
    /// As a container, one per test run; each `ServiceBus` has a namespace of its own in it. Requires the feature
    /// `container`, a container engine, and the image that `emulator/image/build` makes.
    Container,
    /// In an existing namespace, named by the connection string in
    /// [`CONNECTION_STRING_VARIABLE`](crate::CONNECTION_STRING_VARIABLE). One `ServiceBus` of a machine uses it at a time.
    Namespace,
}

impl Mode {
    /// Every mode, in the order of messages.
    pub const ALL: [Self; 4] = [
        Self::InProcess,
        Self::Process,
        Self::Container,
        Self::Namespace,
    ];

    /// Returns the mode of the environment; if the variable is not set or empty, [`Mode::InProcess`], or [`Mode::Process`]
    /// without the feature `in-process`.
    pub fn from_env() -> Result<Self, Error> {
        match env::var_os(MODE_VARIABLE).filter(|value| !value.is_empty()) {
            Some(value) => value.to_string_lossy().parse(),
            None => Ok(Self::default()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Process => "process",
            Self::Container => "container",
            Self::Namespace => "namespace",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = Error;

    /// Accepts the names in any case, with or without the hyphen.
    fn from_str(value: &str) -> Result<Self, Error> {
        let plain = |name: &str| name.trim().replace(['-', '_'], "").to_lowercase();
        Self::ALL
            .into_iter()
            .find(|mode| plain(mode.name()) == plain(value))
            .ok_or_else(|| {
                let sentence = format!(
                    "{MODE_VARIABLE} is \"{value}\", which is not a mode; allowed are in-process, process, container and namespace"
                );
                Error::new(ErrorKind::Mode, None, sentence)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_names_are_case_insensitive() {
        for text in ["in-process", "InProcess", "IN_PROCESS", " inprocess "] {
            assert_eq!(text.parse::<Mode>().unwrap(), Mode::InProcess);
        }
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse::<Mode>().unwrap(), mode);
        }
    }

    #[test]
    fn an_invalid_name_lists_the_allowed_ones() {
        assert_eq!(
            "docker".parse::<Mode>().unwrap_err().to_string(),
            "SERVICEBUS_HARNESS_MODE is \"docker\", which is not a mode; allowed are in-process, process, container and namespace"
        );
    }
}
