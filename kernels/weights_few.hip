// Products with weights of one type of quant_few.h, and rows of them.
#include "include/variant.h"
#include "include/weights_few.h"

RF_CALL(RF_WEIGHTS_FEW, RF_NAME, RF_TYPE)
