//! A namespace within an emulator that holds others too.
//!
//! It is made over the control API and removed when it is dropped, while others use the emulator.

use std::{
    net::SocketAddr,
    sync::{Arc, mpsc},
    time::Duration,
};

use servicebus_emulator::ControlToken;

use crate::{
    address,
    background::Background,
    control::{Control, ControlError},
    liveness::Liveness,
    running::Namespace,
};

/// How long a drop waits for the removal. A process that ended before would leave the namespace behind.
const REMOVED_WITHIN: Duration = Duration::from_secs(5);

/// What the names of such namespaces begin with.
const PREFIX: &str = "bus-";

/// A namespace that is there until this is dropped.
#[derive(Debug)]
pub(crate) struct VirtualNamespace {
    namespace: Namespace,
    control: Arc<Control>,
    background: Arc<Background>,
    is_removed: bool,
}

/// Makes a namespace under an unused name. `topology` is a text in the official emulator's JSON that declares
/// one namespace; `control` is where the emulator's control API is, and `token` what it may want to see.
pub(crate) async fn create(
    background: &Arc<Background>,
    control: SocketAddr,
    liveness: Liveness,
    token: Option<ControlToken>,
    topology: &str,
) -> Result<VirtualNamespace, ControlError> {
    let name = format!("{PREFIX}{:016x}", address::random_number());
    let control = Arc::new(Control::new(control, &name, liveness).showing(token));
    let body = topology.to_owned();
    let create = {
        let control = Arc::clone(&control);
        async move { control.create_namespace(body).await }
    };
    let namespace = background.spawn(create).await?;
    Ok(VirtualNamespace {
        namespace: namespace.into(),
        control,
        background: Arc::clone(background),
        is_removed: false,
    })
}

/// Returns whether a namespace has its name from here.
pub(crate) fn is_made_up(name: &str) -> bool {
    name.starts_with(PREFIX)
}

impl VirtualNamespace {
    /// Its name and the strings that open it.
    pub(crate) fn info(&self) -> &Namespace {
        &self.namespace
    }

    /// Removes it and waits until that is done; an emulator that has ended has nothing to remove.
    pub(crate) async fn remove(mut self) {
        self.is_removed = true;
        let control = Arc::clone(&self.control);
        let remove = async move { control.remove_namespace().await };
        let _ = self.background.spawn(remove).await;
    }
}

impl Drop for VirtualNamespace {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        let (sender, receiver) = mpsc::channel();
        let control = Arc::clone(&self.control);
        let remove = async move {
            // The send fails when the drop has stopped waiting; an emulator that has ended needs nothing.
            let _ = sender.send(control.remove_namespace().await);
        };
        let _removing = self.background.spawn(remove).ending_by_itself();
        let _ = receiver.recv_timeout(REMOVED_WITHIN);
    }
}
