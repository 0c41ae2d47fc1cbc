//! The container engine: finds the image, and starts or finds a container by name.

use std::{
    env, error,
    fmt::{self, Write as _},
    time::Duration,
};

use testcontainers::{
    ContainerAsync, GenericImage, ImageExt, ReuseDirective, TestcontainersError,
    bollard::{Docker, errors::Error as EngineError, models::ImageInspect},
    core::{
        Healthcheck, Mount, WaitFor,
        client::{ClientError, docker_client_instance},
    },
    runners::AsyncRunner,
};

use crate::{error::Error, running::VERSION, variables::IMAGE_VARIABLE};

/// The label with the version of an image (OCI image specification, annotations).
const VERSION_LABEL: &str = "org.opencontainers.image.version";

/// The environment variable with the control token of the emulator.
const TOKEN_VARIABLE: &str = "SERVICEBUS_EMULATOR_CONTROL_TOKEN";
const REPOSITORY: &str = "servicebus-emulator";
/// The label of the harness's containers; its value is the container name.
const LABEL: &str = "servicebus-harness";
/// Part of the line that the emulator prints when every listener is open.
const READY: &str = r#""event":"ready""#;

pub(crate) type Container = ContainerAsync<GenericImage>;

/// The path of the configuration in the image, and that of its data volume.
const CONFIG: &str = "/ServiceBus_Emulator/ConfigFiles/Config.json";
pub(crate) const DATA: &str = "/data";

/// The volume of a container that stores its namespace.
#[derive(Debug, Clone)]
pub(crate) struct Volume {
    /// A directory of this machine, and its owner as `user:group`.
    pub(crate) directory: String,
    pub(crate) owner: Option<String>,
    /// The configuration to serve.
    pub(crate) topology: String,
}

/// A local image of the right version.
#[derive(Debug)]
pub(crate) struct Image {
    repository: String,
    tag: String,
}

impl Image {
    /// Finds the image that the environment names, else the one that the workspace builds.
    pub(crate) async fn find() -> Result<Self, Error> {
        let named = env::var(IMAGE_VARIABLE).ok();
        let image = named
            .as_deref()
            .map_or_else(Self::default_image, |name| Self::parse(name.trim()));
        let docker = engine().await?;
        let found = match docker.inspect_image(&image.to_string()).await {
            Err(error) if status(&error) == Some(404) && named.is_some() => {
                image.pull().await?;
                docker.inspect_image(&image.to_string()).await
            }
            found => found,
        };
        match found {
            Ok(found) => image.check(&found),
            Err(error) if status(&error) == Some(404) => Err(Error::start(format!(
                "the container engine has no image {image}; run `emulator/image/build` in the workspace, or name another image in {IMAGE_VARIABLE}"
            ))),
            Err(error) => Err(no_container_engine(&error)),
        }
    }

    /// Starts the container of a name and waits until it is ready; an existing one is used as it is.
    pub(crate) async fn run(
        &self,
        name: &str,
        token: Option<&str>,
        arguments: Vec<String>,
        volume: Option<&Volume>,
        within: Duration,
    ) -> Result<Container, TestcontainersError> {
        let token = token.map(|token| (TOKEN_VARIABLE, token));
        let image = GenericImage::new(&self.repository, &self.tag)
            .with_wait_for(WaitFor::message_on_either_std(READY))
            .with_container_name(name)
            .with_label(LABEL, name)
            .with_cmd(arguments)
            // The emulator counts health requests as use, and would never be idle.
            .with_health_check(Healthcheck::none())
            // The emulator exits by itself; the engine then removes the container.
            .with_host_config_modifier(|host| host.auto_remove = Some(true))
            .with_reuse(ReuseDirective::Always)
            .with_startup_timeout(within);
        let image = token.into_iter().fold(image, |image, (name, token)| {
            image.with_env_var(name, token)
        });
        let Some(volume) = volume else {
            return image.start().await;
        };
        let image = image
            .with_copy_to(CONFIG, volume.topology.clone().into_bytes())
            .with_mount(Mount::bind_mount(&volume.directory, DATA));
        let owner = volume.owner.iter();
        let image = owner.fold(image, |image, owner| image.with_user(owner));
        image.start().await
    }

    fn default_image() -> Self {
        Self {
            repository: REPOSITORY.to_owned(),
            tag: VERSION.to_owned(),
        }
    }

    /// Parses `repository:tag`, `repository` or `repository@sha256:…`; a colon may also precede the port of a registry.
    fn parse(name: &str) -> Self {
        let (repository, tag) = match name.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, tag),
            _ => (name, "latest"),
        };
        Self {
            repository: repository.to_owned(),
            tag: tag.to_owned(),
        }
    }

    async fn pull(&self) -> Result<(), Error> {
        let image = GenericImage::new(&self.repository, &self.tag);
        let pulled = image.pull_image().await.map(drop);
        pulled.map_err(|error| {
            let reason = reason(&error);
            Error::start(format!(
                "the image {self}, named by {IMAGE_VARIABLE}, does not exist locally and cannot be pulled: {reason}; build it, or name another image there"
            ))
        })
    }

    fn check(self, found: &ImageInspect) -> Result<Self, Error> {
        let labels = found
            .config
            .as_ref()
            .and_then(|config| config.labels.as_ref());
        match labels.and_then(|labels| labels.get(VERSION_LABEL)) {
            Some(version) if version == VERSION => Ok(self),
            Some(found) => Err(Error::start(format!(
                "the image {self} is version {found}, this harness needs {VERSION}; run `emulator/image/build` in the workspace of that version, or name another image in {IMAGE_VARIABLE}"
            ))),
            None => Err(Error::start(format!(
                "{self} is not an image of this emulator: it has no label {VERSION_LABEL}; name another one in {IMAGE_VARIABLE}"
            ))),
        }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.repository, self.tag)
    }
}

/// Returns whether an error is temporary, because another process has just created the container or the engine is removing
/// it.
pub(crate) fn is_temporary(error: &TestcontainersError) -> bool {
    let error = match error {
        TestcontainersError::Client(
            ClientError::CreateContainer(error)
            | ClientError::StartContainer(error)
            | ClientError::InspectContainer(error),
        ) => error,
        TestcontainersError::PortNotExposed { .. } => return true,
        _ => return false,
    };
    matches!(status(error), Some(404 | 409))
}

/// Formats an error with its sources in one line.
pub(crate) fn reason(error: &dyn error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            // Writing to a string does not fail.
            let _ = write!(text, ": {message}");
        }
        cause = error.source();
    }
    text
}

pub(crate) async fn kill(container: &Container) -> Result<(), Error> {
    let killed = engine().await?.kill_container(container.id(), None).await;
    match killed {
        // The container has ended by itself.
        Err(error) if matches!(status(&error), Some(404 | 409)) => Ok(()),
        killed => killed.map_err(|error| no_container_engine(&error)),
    }
}

async fn engine() -> Result<Docker, Error> {
    docker_client_instance()
        .await
        .map_err(|error| no_container_engine(&error))
}

fn no_container_engine(error: &dyn error::Error) -> Error {
    let host = env::var("DOCKER_HOST").unwrap_or_else(|_| "the usual socket".to_owned());
    let reason = reason(error);
    Error::start(format!(
        "no container engine answers at {host}: {reason}; install and start Docker, or name another engine in DOCKER_HOST"
    ))
}

fn status(error: &EngineError) -> Option<u16> {
    match error {
        EngineError::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_image_keeps_its_name() {
        for (name, full) in [
            ("emulator", "emulator:latest"),
            ("emulator:0.1.0", "emulator:0.1.0"),
            (
                "registry:5000/a/emulator",
                "registry:5000/a/emulator:latest",
            ),
            ("registry:5000/emulator:1", "registry:5000/emulator:1"),
            ("emulator@sha256:00ff", "emulator@sha256:00ff"),
        ] {
            assert_eq!(Image::parse(name).to_string(), full);
        }
    }

    #[test]
    fn an_image_of_another_version_is_refused() {
        let labelled = |labels: serde_json::Value| {
            let found = serde_json::json!({ "Config": { "Labels": labels } });
            let found = serde_json::from_value(found).unwrap();
            Image::default_image()
                .check(&found)
                .map_err(|error| error.to_string())
        };
        assert!(labelled(serde_json::json!({ VERSION_LABEL: VERSION })).is_ok());
        let other = labelled(serde_json::json!({ VERSION_LABEL: "9.9.9" })).unwrap_err();
        assert!(other.contains("is version 9.9.9") && other.contains("`emulator/image/build`"));
        let foreign = labelled(serde_json::json!(null)).unwrap_err();
        assert!(
            foreign.contains("is not an image of this emulator"),
            "{foreign}"
        );
    }
}
