/* depthwise.c - which lines of depthwise convolutions a machine has. */
#include "depthwise.h"
#include "depthwise_bytes.h"

CFXI_ISA_CHOICE(cfxi_depthwise, cfxi_depthwise_of, cfxi_depthwise_lines)
CFXI_ISA_CHOICE(cfxi_byte_lines, cfxi_depthwise_bytes_of, cfxi_depthwise_byte_lines)
