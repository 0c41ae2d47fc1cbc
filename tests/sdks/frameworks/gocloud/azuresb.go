// Package cases pins gocloud.dev: what is run is the conformance test of its package for Service Bus, as it is published.
package cases

import _ "gocloud.dev/pubsub/azuresb"
