within Heating;
package Functions "Functions"
end Functions;
