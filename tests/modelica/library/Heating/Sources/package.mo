within Heating;
package Sources "What drives a plant"
end Sources;
