//! `renew-lock`.

use servicebus_broker::RenewError;

use super::call::Management;
use crate::nodes::{Reply, ServiceError};

impl Management<'_, '_> {
    /// `{lock-tokens: uuid[]}` → `{expirations: timestamp[]}`, in the client's time.
    pub(crate) fn renew_lock(&mut self) -> Result<Reply, ServiceError> {
        let tokens = self.lock_tokens()?;
        let renewed = self.entity.renew_locks(self.cx, self.kind, &tokens);
        let ends = renewed.map_err(|error| match error {
            RenewError::LockLost(_) => ServiceError::lock_lost(),
            RenewError::UnderSession(_) => {
                ServiceError::locked_by_session(self.entity.path().as_str())
            }
            RenewError::Disabled => ServiceError::disabled(self.host, self.entity.path().as_str()),
        })?;
        let ends = ends
            .iter()
            .map(|end| end.as_millis().saturating_sub(self.ahead));
        Ok(Reply::map(1, |out| {
            out.string("expirations");
            out.timestamp_array(ends);
        }))
    }
}
