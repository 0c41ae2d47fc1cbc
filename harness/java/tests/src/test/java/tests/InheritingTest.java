package tests;

import org.junit.jupiter.api.Test;
import servicebus.emulator.ServiceBus;
import tests.beside.Base;

class InheritingTest extends Base {
    @Test
    void aResourceBesideTheSuperclassDeclaresQueues(ServiceBus servicebus) {
        servicebus.counts("beside");
    }
}
