// The same for a processor of which there is a simulated card.
#include "no_device_code.hip"
