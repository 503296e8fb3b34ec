within Heating;
package Components "Parts"
end Components;
