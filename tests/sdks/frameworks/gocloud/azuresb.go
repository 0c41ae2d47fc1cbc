// Package cases pins gocloud.dev, whose published conformance test for Service Bus is run.
package cases

import _ "gocloud.dev/pubsub/azuresb"
