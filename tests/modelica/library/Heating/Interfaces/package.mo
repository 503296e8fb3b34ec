within Heating;
package Interfaces "Connectors and what has them"
end Interfaces;
