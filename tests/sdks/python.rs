//! `azure-servicebus` for Python.

/// The blocking clients.
mod blocking {
    every_case!(crate::driver::Sdk::PythonBlocking);
}

/// The clients of `azure.servicebus.aio`.
mod asynchronous {
    every_case!(crate::driver::Sdk::PythonAsynchronous);
}
