//! Namespaces are made and removed.

use bytes::Bytes;
use hyper::Method;

use super::{ANSWER_WITHIN, Control, ControlError, decode};
use crate::running::Namespace;

impl Control {
    /// Makes the namespace of this client. `topology` is a text in the official emulator's JSON.
    pub(crate) async fn create_namespace(
        &self,
        topology: String,
    ) -> Result<Namespace, ControlError> {
        let path = self.namespace_path();
        let body = ("application/json", Bytes::from(topology));
        let answer = self.send(Method::PUT, &path, body, ANSWER_WITHIN).await?;
        decode(&path, &answer)
    }

    /// Removes the namespace of this client with everything in it.
    pub(crate) async fn remove_namespace(&self) -> Result<(), ControlError> {
        let path = self.namespace_path();
        let nothing = ("application/json", Bytes::new());
        let removed = self.send(Method::DELETE, &path, nothing, ANSWER_WITHIN);
        removed.await.map(|_nothing| ())
    }

    fn namespace_path(&self) -> String {
        format!("/$emulator/v1/namespaces/{}", self.namespace)
    }
}
